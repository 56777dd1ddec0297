#!/usr/bin/env python3
"""Indexes of a database that MyRocks wrote have the rows that SQL has.

Starts a private MariaDB server with MyRocks in a temporary directory. Its tables are in a column family in byte order and in one in
reverse order (`rev:`), whose comparators have other names than RocksDB's. After the server has ended, `cairn build` indexes its
directory, and each row is compared with SQL. Then the server changes rows, and the indexes catch up or are built again.

  myrocks_test.py CAIRN
"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

PLUGINS = ["/usr/lib/mysql/plugin", "/usr/lib64/mysql/plugin", "/usr/lib/x86_64-linux-gnu/mariadb19/plugin"]
PROGRAMS = ["mariadbd", "mariadb", "mariadb-admin", "mariadb-install-db"]

# The name of a table, its column family, its definition, and its columns in the order of their storage.
TABLES = {
    "items": ("default", "id int not null, age int not null, city varbinary(40) not null, note varbinary(200), "
              "primary key (id), key by_age (age)"),
    "others": ("default", "id int not null, age int not null, city varbinary(40) not null, note varbinary(200), "
               "primary key (id)"),
    "backwards": ("rev:backwards", "id int not null, age int not null, city varbinary(40) not null, note varbinary(200), "
                  "primary key (id) comment 'rev:backwards'"),
}
FILL = """insert into {table} select cast(seq * 7919 % 20011 as signed) - 10000, cast(seq * 37 % 1000 as signed) - 300, concat('c', seq % 7),
  if(seq % 5 = 0, null, repeat('x', seq % 90)) from seq_1_to_{rows};
set global rocksdb_force_flush_memtable_now = 1;
update {table} set age = age + 5, note = concat('changed ', id) where id % 3 = 0;
delete from {table} where id % 11 = 0;
set global rocksdb_force_flush_memtable_now = 1;
delete from {table} where id between 100 and 300;
"""
CHANGE = """update {table} set age = age - 7 where id % 5 = 0;
delete from {table} where id % 13 = 0;
insert into {table} values (20001, 1, 'new', null), (-20001, -1, 'new', '');
set global rocksdb_force_flush_memtable_now = 1;
update {table} set city = 'last' where id % 17 = 0;
"""


class Server:
    def __init__(self, directory):
        self.directory = directory
        self.data = directory / "data"
        self.socket = directory / "socket"
        installed = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--user=root",
                                    "--auth-root-authentication-method=normal", "--skip-test-db"],
                                   capture_output=True, text=True)
        if installed.returncode != 0:
            raise RuntimeError(f"mariadb-install-db: {installed.stdout} {installed.stderr}")

    def __enter__(self):
        with open(self.directory / "log", "a") as log:
            self.process = subprocess.Popen(
                ["mariadbd", "--no-defaults", "--user=root", f"--datadir={self.data}", f"--socket={self.socket}",
                 "--skip-networking", "--plugin-load-add=ha_rocksdb", f"--pid-file={self.directory / 'pid'}"],
                stdout=log, stderr=log)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            if subprocess.run(self.client("-e", "select 1"), capture_output=True).returncode == 0:
                return self
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(f"the server does not start: {(self.directory / 'log').read_text()[-2000:]}")

    def __exit__(self, *_):
        subprocess.run(["mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-uroot", "shutdown"], check=False)
        try:
            self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def client(self, *arguments):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", *arguments]

    def sql(self, statements):
        """Rows as lists of texts; SQL's NULL is None."""
        run = subprocess.run(self.client("-N", "-B", "-e", statements), capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"{statements}: {run.stderr}")
        return [[None if cell == "NULL" else cell for cell in line.split("\t")] for line in run.stdout.splitlines()]

    def rows(self, table):
        return {int(row[0]): (int(row[1]), row[2], row[3])
                for row in self.sql(f"select id, age, city, if(note is null, 'NULL', concat('=', note)) from t.{table}")}


def unescape(text):
    out, i = bytearray(), 0
    data = text.encode()
    while i < len(data):
        if data[i:i + 2] == b"\\x":
            out.append(int(data[i + 2:i + 4], 16))
            i += 4
        else:
            out.append(data[i])
            i += 1
    return bytes(out)


def decode(number, key, value):
    """The id, and the other columns, of a row in MyRocks' format."""
    assert struct.unpack(">I", key[:4])[0] == number
    row_id = struct.unpack(">I", key[4:8])[0] - (1 << 31)
    is_null = value[0] & 1
    age = struct.unpack("<i", value[1:5])[0]
    city_end = 6 + value[5]
    note = None if is_null else "=" + value[city_end + 1:city_end + 1 + value[city_end]].decode()
    return row_id, (age, value[6:city_end].decode(), note)


def main():
    cairn, = sys.argv[1:]
    for program in PROGRAMS:
        if shutil.which(program) is None:
            print(f"skipped: there is no {program} (Debian: mariadb-plugin-rocksdb)")
            return 77
    if not any((pathlib.Path(path) / "ha_rocksdb.so").exists() for path in PLUGINS):
        print("skipped: MariaDB has no plug-in ha_rocksdb.so (Debian: mariadb-plugin-rocksdb)")
        return 77

    def run(*arguments, check=True):
        done = subprocess.run([cairn, *arguments], capture_output=True, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"cairn {' '.join(arguments)}: {done.returncode} {done.stdout} {done.stderr}")
        return done

    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        server = Server(directory)
        database = str(server.data / "#rocksdb")
        expected, numbers = {}, {}

        def build(table):
            # Rows of other tables and indexes of the column family have other numbers, and some have no such value.
            run("build", "--db", database, "--cf", TABLES[table][0], "--out", str(directory / table), "--spec",
                "key[0:4]:u32be, value[1:4]:i32le, on_error=skip, include(id = key[4:4]:u32be)")

        def check(when):
            for table in TABLES:
                index, number = str(directory / table), numbers[table]
                verified = run("verify", index, "--db", database, check=False)
                if verified.returncode != 0:
                    raise RuntimeError(f"{when}: {table}: {verified.stdout} {verified.stderr}")
                # Every entry of the table's primary key, with its row.
                out = run("query", index, f"--prefix={number}", "--select=id", "--format=tsv", "--db", database).stdout
                found, ages = {}, []
                for line in out.splitlines():
                    key, primary_key, included, value = line.split("\t")
                    row_id, row = decode(number, unescape(primary_key), unescape(value))
                    if key != f"{number},{row[0]}" or int(included) != row_id + (1 << 31):
                        raise RuntimeError(f"{when}: {table}: row {row_id}, {row}, is indexed as {key}, {included}")
                    if row_id in found:
                        raise RuntimeError(f"{when}: {table}: row {row_id} twice")
                    found[row_id] = row
                    ages.append((row[0], row_id))
                if found != expected[table]:
                    different = {key for key in found.keys() | expected[table].keys()
                                 if found.get(key) != expected[table].get(key)}
                    raise RuntimeError(f"{when}: {table}: {len(different)} rows differ, such as "
                                       f"{[(k, found.get(k), expected[table].get(k)) for k in sorted(different)[:3]]}")
                # Rows of one key are in the order of primary keys, also in reverse column families.
                if ages != sorted(ages):
                    raise RuntimeError(f"{when}: {table}: entries are not in order")
                for age in (ages[0][0], ages[len(ages) // 2][0]):
                    count = int(run("count", index, f"--eq={number},{age}").stdout)
                    if count != sum(row[0] == age for row in expected[table].values()):
                        raise RuntimeError(f"{when}: {table}: {count} rows of age {age}")
                print(f"{when}: {table}: {len(found)} rows are those of SQL")

        with server:
            server.sql("create database t")
            for table, (_, columns) in TABLES.items():
                server.sql(f"use t; create table {table} ({columns}) engine = rocksdb")
                server.sql("use t; " + FILL.format(table=table, rows=20000 if table != "others" else 500))
            for table, number in server.sql("select table_name, index_number from information_schema.rocksdb_ddl "
                                            "where table_schema = 't' and index_name = 'PRIMARY'"):
                numbers[table] = int(number)
            expected = {table: server.rows(table) for table in TABLES}
            assert all(len(rows) > 300 for rows in expected.values())
            for table in TABLES:  # the log has the rows that are in no file yet
                build(table)
            check("while the server runs")
        for table in TABLES:
            build(table)
        check("after a build")

        with server:
            for table in TABLES:
                server.sql("use t; " + CHANGE.format(table=table))
            expected = {table: server.rows(table) for table in TABLES}
        for table in TABLES:
            caught_up = run("catch-up", str(directory / table), "--db", database, check=False)
            if caught_up.returncode == 0:
                print(f"{table} caught up")
                continue
            # MyRocks removes log files as soon as their rows are in table files.
            if "rebuild the index" not in caught_up.stderr:
                raise RuntimeError(f"catch-up: {caught_up.stdout} {caught_up.stderr}")
            print(f"{table} is built again: {caught_up.stderr.strip()}")
            build(table)
        check("after changes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
