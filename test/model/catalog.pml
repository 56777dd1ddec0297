// The indexes of a live database, for one index: the marks next to their directories
// (engine/live/index_catalog.cc), CreateIndex and DropIndex (engine/live/index_set.cc), and the
// thread that builds and catches up (engine/live/index_upkeep.cc, engine/live/followed_index.cc).
// Also changes that the log does not contain, such as ingested files (IndexSet::ChangePastLog,
// engine/live/past_log_changes.h). Processes are killed, power is lost and syncs fail.
//
// A thread is represented by its next step, so that a crash ends all threads: each alternative of
// the one loop is a step of one thread. The rows of an index are represented by the number of
// changes past the log at the time its base was scanned. All other changes are in the log, which
// log_following.pml models; publication.pml models the publishing of a version.

#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef ERRORS
#define ERRORS 1  // syncs that fail
#endif
#ifndef CHANGES
#define CHANGES 2  // past the log
#endif
#ifndef CREATIONS
#define CREATIONS 2
#endif
#ifndef DROPS
#define DROPS 2
#endif

// Values of marks.
#define NONE 0
#define BUILD 1
#define STALE 2
#define REMOVED 3
#define TORN 4

// Values of an index's files: none, files that are not an index, or a base scanned after this
// number of changes.
#define NO_FILES 0
#define NO_INDEX 1
#define BASE(changes) (2 + (changes))

// The disk: the visible value, and a set of bits for the values that a power loss may restore.
byte mark, may_mark = 1;
byte files, may_files = 1;
bool torn_mark;  // its bytes are not synced
bool catalog, catalog_durably;
byte changes;  // number of changes of the database

// Results that callers have received.
#define EITHER 0
#define WANTED 1
#define GONE 2
byte told = GONE;
bool told_ready;  // without any change since

// The process.
bool attached, listed;
byte wanted;  // FollowedIndex::mark_
bool in_doubt;  // whether the disk may have another mark, since writing a mark failed
bool has_writer, member;
byte base;  // the base that the writer has opened
byte state;
#define NOT_READY 0
#define CATCHING_UP 1
#define READY 2
#define ENDED 3
bool job;  // whether a job is scheduled
byte count, going_on;  // PastLogChanges
bool seen;  // by the change in progress

// The writer of a mark, which holds mark_mutex_; its progress, and the value that it writes.
#define NOBODY 0
#define USER 1
#define CHANGE 2
#define UPKEEP 3
byte marking, step, kind;
#define WRITE 1
#define SYNC 2
#define DONE 3
#define FAILED 4

byte user, change, upkeep, attach;  // the next step of each
byte upkeep_wanted, upkeep_count, upkeep_base;
byte crashes, errors, creations, drops;

inline SetMark(value) {
  mark = value;
  may_mark = may_mark | (1 << value)
}

inline SetFiles(value) {
  files = value;
  may_files = may_files | (1 << value)
}

inline SyncCatalog() {
  may_mark = 1 << mark;
  may_files = 1 << files
}

#define MARKED(who) (marking == who && step >= DONE)

inline BeginMark(who, value) {
  marking = who;
  kind = value;
  step = WRITE
}

inline EndMark() {
  in_doubt = (step == FAILED || (in_doubt && step != DONE));
  marking = NOBODY;
  step = 0;
  kind = 0
}

// FollowedIndex::MarkStale.
inline MarkStale() {
  if
  :: listed && wanted == NONE ->
#ifdef MUTANT_NO_STALE_MARK_WITHOUT_WRITER
     if
     :: has_writer -> BeginMark(CHANGE, STALE)
     :: else
     fi
#else
     BeginMark(CHANGE, STALE)
#endif
#ifndef MUTANT_MARK_IN_DOUBT_TRUSTED
  :: listed && in_doubt && (wanted == BUILD || wanted == STALE) -> BeginMark(CHANGE, wanted)
#endif
  :: else
  fi
}

inline EndProcess() {
  attached = false; listed = false; wanted = NONE; has_writer = false; member = false; base = 0; state = NOT_READY;
  job = false; count = 0; going_on = 0; seen = false;
  EndMark();
  in_doubt = false;
  user = 0; change = 0; upkeep = 0; attach = 0;
  upkeep_wanted = 0; upkeep_count = 0; upkeep_base = 0
}

active proctype System() {
end:
  do
  // --- IndexCatalog::Mark.
  :: atomic {
       step == WRITE ->
       step = SYNC;
#ifdef MUTANT_ABSENT_MARK_NOT_SYNCED
       if
       :: kind == NONE && mark == NONE -> step = DONE
       :: else
       fi;
#endif
       if
       :: mark != kind -> SetMark(kind)
       :: else
       fi;
#ifdef MUTANT_MARK_NOT_SYNCED
       torn_mark = (kind != NONE)
#endif
     }
  :: atomic {
       step == SYNC ->
#ifdef MUTANT_NAME_OF_MARK_NOT_SYNCED
       step = DONE
#else
       if
       :: SyncCatalog(); step = DONE
       :: errors < ERRORS -> errors++; step = FAILED
       fi
#endif
     }

  // --- IndexedDB::Open: IndexCatalog::Open, IndexSet::Start.
  :: atomic { !attached && attach == 0 && crashes <= CRASHES -> catalog = true; attach = 1 }
  :: atomic {
       attach == 1 ->
#ifndef MUTANT_NO_CATALOG_PARENT_SYNC
       catalog_durably = true;
#endif
#ifndef MUTANT_MARKS_READ_BEFORE_SYNC
       SyncCatalog();
#endif
       attach = 2
     }
  :: atomic {
       attach == 2 ->
       if
#ifdef MUTANT_BUILD_FORGOTTEN
       :: mark == BUILD -> attach = 3
#endif
       :: mark == REMOVED || (mark == TORN && files < BASE(0)) -> attach = 3
       :: else -> attach = 6
       fi
     }
  :: atomic { attach == 3 && marking == NOBODY -> BeginMark(USER, REMOVED); attach = 4 }
  :: atomic {
       attach == 4 && MARKED(USER) ->
       if
       :: step == DONE -> SetFiles(NO_FILES); SyncCatalog(); EndMark(); BeginMark(USER, NONE); attach = 5
       :: else -> EndMark(); attach = 0
       fi
     }
  :: atomic { attach == 5 && MARKED(USER) -> attach = (step == DONE -> 6 : 0); EndMark() }
  :: atomic {
       attach == 6 ->
       attach = 0;
       attached = true;
       listed = (mark == BUILD || mark == STALE || files >= BASE(0));
       wanted = (mark == TORN -> STALE : mark);
       job = listed;
       assert(told != WANTED || listed);
       assert(told != GONE || !listed);
  // a ready index is not built again
       assert(!told_ready || (mark == NONE && files >= BASE(0)))
     }

  // --- IndexSet::CreateIndex.
  :: atomic {
       attached && user == 0 && !listed && creations < CREATIONS && marking == NOBODY ->
       creations++;
       told = EITHER;
       BeginMark(USER, BUILD);
       user = 1
     }
  :: atomic {
       user == 1 && MARKED(USER) ->
       if
       :: step == DONE ->
          EndMark();
          wanted = BUILD;
          listed = true;
          job = true;
          state = NOT_READY;
          told = WANTED;
          user = 0
       :: else -> EndMark(); BeginMark(USER, NONE); user = 2
       fi
     }
  :: atomic { user == 2 && MARKED(USER) -> EndMark(); user = 0 }

  // --- IndexSet::DropIndex.
  :: atomic {
       attached && user == 0 && listed && drops < DROPS ->
       drops++;
       told = EITHER;
       told_ready = false;
#ifdef MUTANT_DROPPED_FROM_LIST_FIRST
       listed = false;
       member = false;
       state = NOT_READY;
#endif
       user = 3
     }
  :: atomic { user == 3 && marking == NOBODY -> BeginMark(USER, REMOVED); user = 4 }
  :: atomic {
       user == 4 && MARKED(USER) ->
       if
       :: step == DONE -> EndMark(); wanted = REMOVED; state = ENDED; member = false; user = 5
       :: else ->
          // The index stays.
          EndMark();
          BeginMark(USER, wanted);
          user = 9
       fi
     }
  :: atomic {
       user == 9 && MARKED(USER) ->
       EndMark();
#ifdef MUTANT_DROPPED_FROM_LIST_FIRST
       listed = true;
#endif
       user = 0
     }
  // Holds the index's work_mutex.
  :: atomic { user == 5 && upkeep == 0 && marking == NOBODY -> member = false; BeginMark(USER, REMOVED); user = 6 }
  :: atomic {
       user == 6 && MARKED(USER) ->
       if
       :: step == DONE -> EndMark(); user = 7
       :: else -> EndMark(); user = 0  // must be dropped again
       fi
     }
  // IndexCatalog::RemoveFiles.
  :: atomic { user == 7 && files > NO_INDEX -> SetFiles(NO_INDEX) }
  :: atomic { user == 7 && files == NO_INDEX -> SetFiles(NO_FILES) }
  :: atomic {
       user == 7 && files == NO_FILES && marking == NOBODY ->
       if
       :: SyncCatalog(); BeginMark(USER, NONE); user = 8
       :: errors < ERRORS -> errors++; user = 0
       fi
     }
  :: atomic {
       user == 8 && MARKED(USER) ->
       if
       :: step == DONE ->
          told = GONE;
          listed = false;
          wanted = NONE;
          has_writer = false;
          base = 0;
          job = false;
          state = NOT_READY
       :: else
       fi;
       EndMark();
       user = 0
     }

  // --- IndexSet::ChangePastLog.
  :: atomic {
       attached && change == 0 && changes < CHANGES ->
       told_ready = false;
       seen = listed;
#ifdef MUTANT_INDEXES_LISTED_ONCE
       if
       :: seen -> count++; going_on++
       :: else
       fi;
#else
       count++;
       going_on++;
#endif
       change = 1
     }
#ifdef MUTANT_STALE_AND_REMOVED_WITHOUT_COMMON_LOCK
  :: atomic { change == 1 -> change = (listed -> 8 : 2) }
  :: atomic { change == 8 && marking == NOBODY -> BeginMark(CHANGE, STALE); change = 2 }
#else
  :: atomic {
       change == 1 && marking == NOBODY ->
#ifndef MUTANT_MARKED_BEHIND_THE_CHANGE_ALONE
       MarkStale();
#endif
       change = 2
     }
#endif
  :: atomic {
       change == 2 && (marking != CHANGE || MARKED(CHANGE)) ->
       change = 3;
       if
       :: marking == CHANGE ->
          if
          :: step == DONE -> wanted = kind
          :: else -> change = 4
          fi;
          EndMark()
       :: else
       fi
     }
  :: atomic { change == 3 -> changes++; change = 4 }
  :: atomic {
       change == 4 ->
#ifdef MUTANT_INDEXES_LISTED_ONCE
       if
       :: seen -> count++; going_on--
       :: else
       fi;
#else
       count++;
       going_on--;
#endif
       change = 5
     }
  :: atomic {
       change == 5 && marking == NOBODY ->
#ifdef MUTANT_INDEXES_LISTED_ONCE
       if
       :: seen -> MarkStale()
       :: else
       fi;
#else
       MarkStale();
#endif
       change = 6
     }
  :: atomic {
       change == 6 && (marking != CHANGE || MARKED(CHANGE)) ->
       change = 7;
       if
       :: marking == CHANGE ->
          if
          :: step == DONE -> wanted = kind
          :: else
          fi;
          EndMark()
       :: else
       fi
     }
  :: atomic {
       // LogFollower::Fail.
       change == 7 ->
       if
       :: member ->
          member = false;
          job = true;
          state = (state == ENDED -> ENDED : NOT_READY)
       :: else
       fi;
       seen = false;
       change = 0
     }

  // --- IndexUpkeep::Run, which holds the index's work_mutex. Attempt: catches up.
  :: atomic {
       job && upkeep == 0 && user < 5 ->
       job = false;
       if
       :: state == READY || state == ENDED || !listed
       :: else ->
          upkeep_count = count;
          upkeep_wanted = NONE;
          if
#ifdef MUTANT_BUILD_TAKES_WHAT_IS_THERE
          :: files >= BASE(0) && (wanted == NONE || wanted == BUILD) ->
             upkeep_wanted = wanted;
#else
          :: files >= BASE(0) && wanted == NONE ->
#endif
             has_writer = true;
             base = files - BASE(0);
             state = CATCHING_UP;
             upkeep = 4
          :: else -> upkeep = 1
          fi
       fi
     }
  // TryBuild.
  :: atomic {
       upkeep == 1 ->
       upkeep_count = count;
       upkeep_wanted = wanted;
       state = (state == ENDED -> ENDED : NOT_READY);
       if
       :: !has_writer && wanted == BUILD && files != NO_FILES -> SetFiles(NO_FILES); SyncCatalog()
       :: else
       fi;
       upkeep = 2
     }
  :: atomic { upkeep == 2 -> upkeep_base = changes; upkeep = 3 }
  :: atomic {
       upkeep == 3 ->
       if
       :: files < BASE(0) -> SetFiles(NO_INDEX); SyncCatalog()
       :: else
       fi;
       SetFiles(BASE(upkeep_base));
       upkeep = 5
     }
  :: atomic {
       upkeep == 5 ->
       may_files = 1 << files;
       upkeep_base = 0;
       if
       :: state == ENDED -> upkeep = 0  // cancelled
       :: else ->
          has_writer = true;
          base = files - BASE(0);
          state = CATCHING_UP;
          upkeep = 4
       fi
     }
  // CatchUpAndJoin.
  :: atomic {
       upkeep == 4 ->
       member = true;
       upkeep = 6
     }
  // Finish: FollowedIndex::MarkFollowing.
  :: atomic {
       upkeep == 6 && marking == NOBODY ->
       if
#ifdef MUTANT_MARK_REMOVED_DURING_A_CHANGE
       :: wanted == upkeep_wanted && count == upkeep_count ->
#else
       :: wanted == upkeep_wanted && count == upkeep_count && going_on == 0 ->
#endif
          if
          :: wanted == NONE -> upkeep = 8
          :: else -> BeginMark(UPKEEP, NONE); upkeep = 7
          fi
       :: else -> upkeep = 9
       fi
     }
  :: atomic {
       upkeep == 7 && MARKED(UPKEEP) ->
       if
       :: step == DONE -> wanted = NONE; upkeep = 8
       :: else -> upkeep = 9
       fi;
       EndMark()
     }
  :: atomic {
       // FollowedIndex::SetReady.
       upkeep == 8 ->
       if
#ifdef MUTANT_READY_WHATEVER_CAME_BETWEEN
       :: state != ENDED ->
#else
       :: state == CATCHING_UP ->
#endif
          state = READY;
          told_ready = (change == 0 && user == 0 && !in_doubt && told == WANTED)
       :: else
       fi;
       upkeep_wanted = 0; upkeep_count = 0;
       upkeep = 0
     }
  :: atomic {
       upkeep == 9 ->
       member = false;
       state = (state == ENDED -> ENDED : NOT_READY);
       job = true;
       upkeep_wanted = 0; upkeep_count = 0;
       upkeep = 0
     }

  // --- A query. During a change it sees the rows before or after it.
  :: atomic {
       state == READY && member ->
       assert(listed);
       assert(change != 0 || base == changes);
       assert(told != GONE)
     }

  // --- A killed process; a power loss.
  :: atomic { attached && crashes < CRASHES -> crashes++; EndProcess() }
  :: atomic { attach > 0 && crashes < CRASHES -> crashes++; EndProcess() }
  :: atomic {
       crashes < CRASHES ->
       crashes++;
       EndProcess();
       if
       :: catalog && !catalog_durably -> catalog = false; mark = NONE; files = NO_FILES
       :: true ->
          catalog_durably = catalog;
          if
          :: may_mark & 1 -> mark = 0
          :: may_mark & 2 -> mark = 1
          :: may_mark & 4 -> mark = 2
          :: may_mark & 8 -> mark = 3
          :: may_mark & 16 -> mark = 4
          fi;
          if
          :: may_files & 1 -> files = 0
          :: may_files & 2 -> files = 1
          :: may_files & 4 -> files = 2
          :: may_files & 8 -> files = 3
          :: may_files & 16 -> files = 4
          fi;
          if
          :: torn_mark && mark != NONE -> mark = TORN
          :: true
          fi
       fi;
       torn_mark = false;
       SyncCatalog()
     }
  od
}
