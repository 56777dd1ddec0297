from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import get
from conan.tools.gnu import PkgConfigDeps


class CairnConan(ConanFile):
    name = "cairn"
    version = "@CAIRN_VERSION@"
    description = "Embeddable secondary indexes for RocksDB, queried in batches"
    license = "Apache-2.0"
    topics = ("database", "rocksdb", "index")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    # Cairn links RocksDB's shared library.
    default_options = {"shared": False, "rocksdb/*:shared": True}

    def layout(self):
        cmake_layout(self, src_folder="src")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("cairn supports Linux only")
        check_min_cppstd(self, 20)

    def requirements(self):
        # The headers include these two.
        self.requires("abseil/[>=20220623.0]", transitive_headers=True, transitive_libs=True)
        self.requires("rocksdb/[>=7.8 <12]", transitive_headers=True, transitive_libs=True)
        self.requires("cli11/[>=2.3]")
        self.requires("highway/[>=1.0.3]")
        self.requires("hwloc/[>=2.9]")
        self.requires("onetbb/[>=2021.8]")
        self.requires("simdjson/[>=3.0]")
        self.requires("xxhash/[>=0.8.1]")
        self.requires("zstd/[>=1.5]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")
        self.tool_requires("pkgconf/[>=2.0]")

    def source(self):
        get(self, url="@CAIRN_URL@", sha256="@CAIRN_SHA256@", strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["CAIRN_CUDA"] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        for target in ("cairn", "cairn_tool", "cairn_documents"):
            cmake.build(target=target)

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package's own cairnConfig.cmake.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/cairn"]
        self.cpp_info.libs = ["cairn"]
