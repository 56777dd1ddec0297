class Cairn < Formula
  desc "Embeddable secondary indexes for RocksDB, queried in batches"
  homepage "@CAIRN_HOMEPAGE@"
  url "@CAIRN_URL@"
  sha256 "@CAIRN_SHA256@"
  license "Apache-2.0"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "abseil"
  depends_on "highway"
  depends_on "hwloc"
  depends_on :linux
  depends_on "rocksdb"
  depends_on "simdjson"
  depends_on "tbb"
  depends_on "xxhash"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DBUILD_SHARED_LIBS=ON", "-DCAIRN_CUDA=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"cairn", "demo", testpath/"db", "--rows=1000"
    system bin/"cairn", "build", "--db=#{testpath}/db", "--cf=customer", "--out=#{testpath}/phone",
           "--spec=phone=value.field('|',4):text"
    assert_match "OK", shell_output("#{bin}/cairn verify #{testpath}/phone --db=#{testpath}/db")
  end
end
