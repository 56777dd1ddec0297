#pragma once

// Programs that found defects, which are fixed.

namespace cairn::stateful {

inline constexpr const char* kFoundPrograms[] = {
    R"(# a row of a unique index that is written past the log
world indexes=16
write how=2 rows=0
single family=1 delete=0 value=0
)",
    R"(# a failed pipelined write
world indexes=1 write_path=pipelined
put family=0 key=1 value=1
write how=3 rows=0
put family=0 key=5 value=7
check salt=1
)",
    R"(# a failed write without paranoid checks
world indexes=1 paranoid_checks=no
put family=0 key=1 value=1
write how=3 rows=0
put family=0 key=5 value=7
check salt=1
)",
    R"(# a file that is ingested past the object into a new family
world indexes=64
make_family how=0
put family=2 key=1 value=1
check salt=1
ingest family=2 key=4 value=4 how=1
check salt=1
)",
    R"(# a write without a log after an empty range that was recovered
world indexes=1
put family=0 key=1 value=1
store
put family=0 key=2 value=2
delete_range family=0 key=2 end=2
crash operations=0 power=0 salt=0
check salt=1
write how=2 rows=0
put family=0 key=4 value=4
check salt=1
)",
    R"(# a log filter
world indexes=1
put family=0 key=1 value=1
store
put family=0 key=2 value=1
put family=0 key=2 value=2
filter_log how=0
check salt=1
)",
    R"(# DeleteFile
world indexes=1
put family=0 key=1 value=1
flush family=0
delete_file file=0
check salt=1
)",
    R"(# a lost table, and recovery by best efforts
world indexes=1
put family=0 key=1 value=1
flush family=0
put family=0 key=2 value=2
flush family=0
lose_file file=1 how=0
check salt=1
)",
    R"(# a table that a tool removed
world indexes=1
put family=0 key=1 value=1
flush family=0
put family=0 key=2 value=2
flush family=0
lose_file file=1 how=2
check salt=1
)",
    R"(# a family that is made again past the object
world indexes=8 wrapper=attach_transactions
put family=1 key=1 value=1
remake_family family=1 how=1
put family=1 key=2 value=2
)",
    R"(# a filter that changes rows
world indexes=1 filter=changes
put family=0 key=3 value=3
flush family=0
compact family=0
)",
    R"(# a row read beside its writer
world indexes=1
race_rows family=0 key=3
race_rows family=0 key=3
race_rows family=0 key=3
)",
    R"(# a duplicate while a unique index is built
world indexes=16
put family=1 key=3 value=3
check salt=1
rebuild_index index=4
put family=1 key=4 value=3
)",
    R"(# an extractor of another version
world indexes=4
put family=0 key=3 value=3
reopen field=13 value=1
)",
    R"(# another merge operator
world indexes=1
put family=0 key=3 value=3
merge family=0 key=3 value=3
reopen field=12 value=1
)",
    R"(# unordered writes
world indexes=1
put family=0 key=3 value=3
reopen field=2 value=3
check salt=1
)",
    R"(# an ingestion that fails
world indexes=1
put family=0 key=3 value=3
failing_ingest family=0
)",
    R"(# a filter that removes rows of an index that does not ignore it
world indexes=2 filter=removes
)",
    R"(# failed writes that no listener reports
world indexes=1 wrapper=attach write_path=pipelined
)",
    R"(# an older log file that was lost
world indexes=8
put family=1 key=1 value=1
lose_log file=0 how=0
)",
    R"(# a unique key of a row that a filter removed
world indexes=16 filter=removes
put family=1 key=3 value=3
flush family=1
compact family=1
put family=1 key=4 value=3
)",
    R"(# counts of distinct keys
world indexes=2
write how=0 rows=4
put family=0 key=1 value=2
put family=0 key=2 value=2
put family=0 key=3 value=17
put family=0 key=4 value=3
put family=0 key=5 value=4
put family=0 key=1 value=0
)",
    R"(# counts of distinct keys after a merge
world indexes=2
write how=0 rows=4
put family=0 key=1 value=2
put family=0 key=2 value=2
put family=0 key=3 value=17
put family=0 key=4 value=3
put family=0 key=5 value=4
merge_index index=1
put family=0 key=1 value=0
)",
    R"(# pages of rows with several keys
world indexes=4
put family=0 key=3 value=3
put family=0 key=4 value=4
check salt=1
check salt=2
check salt=3
)",
    R"(# writes without a log after two empty ranges, in a session without indexes
world indexes=1
delete_range family=0 key=6 end=6
delete_range family=0 key=5 end=5
copy slot=0
plain_session how=3 key=0 value=0
)",
    R"(# a table that was lost in a session without indexes, and a crash after that was noticed
world indexes=1
put family=0 key=0 value=0
crash operations=0 power=0 salt=0 after_empty_range=0
lose_file file=0 how=1
put family=0 key=0 value=0
crash operations=0 power=0 salt=0 after_empty_range=0
)",
    R"(# a table with the newest value of a row that was lost, with FIFO compaction
world indexes=1 style=fifo
put family=0 key=11 value=0
copy slot=0
put family=0 key=11 value=1
reopen field=0 value=0
lose_file file=0 how=2
)",
    R"(# a table that was written after the index was stored, and lost before it was opened
world indexes=1
put family=0 key=1 value=1
copy slot=0
put family=0 key=2 value=2
flush family=0
lose_file file=1 how=5
check salt=1
)",
    R"(# a table that was lost, and a compaction when the database is opened again
world indexes=1
many_files hundreds=0
put family=0 key=0 value=0
entity family=1 key=0 value=0
lose_file file=0 how=2
)",
    R"(# a table that was lost from a repaired database, which does not know how old it is
world indexes=1
single family=0 delete=0 value=0
repair
copy slot=0
single family=0 delete=0 value=0
store
lose_file file=0 how=5
)",
    R"(# a failed write, of which the follower learns after the index was built again
world indexes=1 write_path=two_queues on_stale=report
lose_log file=0 how=0
write how=3 rows=1
merge family=0 key=0 value=0
)",
    R"(# a table that was lost within the second in which it was written
world indexes=0
plain_session how=0 key=0 value=0
create_index index=1
check salt=0
merge family=0 key=0 value=0
lose_file file=0 how=3
)",
};

}  // namespace cairn::stateful
