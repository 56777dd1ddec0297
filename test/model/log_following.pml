// The link between an index and one history of its database: the anchor (engine/log/anchor.cc). A
// build takes it (engine/build/index_builder.cc), catching up checks it (engine/serve/catch_up.cc,
// engine/log/update_log.cc, engine/log/ingested_files.cc), and each store advances it
// (engine/version/index_writer.cc). The process that has the database open for writing also knows
// the batches that it writes without a log (engine/log/unlogged_writes.cc). Concurrently the database writes with and without its log,
// flushes, ingests, compacts and deletes logs. It is killed, loses the end of its log in a power
// loss, and is restored from an older copy. Another process may also build or catch up.
//
// If catching up returns OK, the index has the database's rows. A crash alone never causes an index
// to be rejected.

#ifndef NUMBERS
#define NUMBERS 3  // sequence numbers
#endif
#ifndef CRASHES
#define CRASHES 1  // killed processes and power losses
#endif
#ifndef EVENTS
// in total: crashes, flushes, ingestions, compactions, deletions of logs, copies and restores
#define EVENTS 3
#endif
#ifndef UNLOGGED
#define UNLOGGED 1  // writes with disableWAL
#endif
#ifndef INGESTIONS
#define INGESTIONS 1
#endif
#define UNPROVEN 7  // instead of a table's id: there is none
// Contents of rows, which are different in each history of the database.
#define ROW(history) (1 + (history))
#define OF_ANOTHER_FAMILY(history) (5 + (history))
#define INGESTED(file) (8 + (file))

// The database. For each sequence number:
byte row[NUMBERS + 1];  // its contents; 0 if they are lost
byte log_of[NUMBERS + 1];  // the log file that has it; 0 if there is none
bool tabled[NUMBERS + 1];  // whether it is in a table file
byte last, synced;  // the last assigned number, and the last one that is in the log on disk
byte file_number;  // of the newest file
byte logs;  // existing log files, including archived ones: a bit per file number
byte log, live_log;  // the current log file, and the oldest one that is not archived
byte tables;  // live table files: a bit per unique id
byte newest_table, table_last;  // its id, and the last of the column family's rows in it
byte ingested_file, ingested_id;  // number and contents of the newest one; 0: none
byte unnumbered_id;  // of a file that was ingested without a sequence number

// Numbers that are never assigned again.
byte last_table, last_ingested;

// The copy for restores.
byte copy_row[NUMBERS + 1], copy_log_of[NUMBERS + 1];
bool copy_tabled[NUMBERS + 1];
byte copy_last, copy_file_number, copy_log, copy_live_log, copy_tables, copy_newest_table, copy_table_last;
byte copy_ingested_file, copy_ingested_id, copy_unnumbered_id;
bool copied;

// The stored index.
bool built;
byte index_row[NUMBERS + 1];
byte index_last, index_unnumbered_id;
bool anchor_is_of_session;  // of the session in which the database is open
byte anchor_log, anchor_at, anchor_set, anchor_table, anchor_ingested, anchor_ingested_id;
// the first log file that can only have records after everything that is in no log
byte anchor_fence;

byte unlogged, crashes, restores, ingestions, events;
bool excuse;  // a reason to reject the index
bool snapshot;  // held by a build of the database's process

#define IN_FAMILY(s) (row[s] >= 1 && row[s] <= 4)
#define IN_ANOTHER(s) (row[s] >= 5 && row[s] <= 8)
#define SEEN(value) ((value) >= 5 && (value) <= 8 -> 0 : (value))

inline Flush(all) {
  d_step {
    s = 1;
    t = 0;
    u = 0;  // the last row of another column family that is only in the log
    do
    :: s <= NUMBERS ->
       if
       :: s <= last && IN_FAMILY(s) && !tabled[s] -> tabled[s] = true; t = s
       :: s <= last && IN_ANOTHER(s) && !tabled[s] ->
          if
          :: all -> tabled[s] = true
          :: else -> u = 1
          fi
       :: else
       fi;
       s++
    :: else -> break
    od;
    if
    :: t > 0 ->
       last_table++;
       newest_table = last_table;
       tables = tables | (1 << newest_table);
       table_last = t
    :: else
    fi;
    synced = last;
    file_number++;
    log = file_number;
    logs = logs | (1 << log);
    if
    :: u == 0 -> live_log = log
    :: else
    fi;
    s = 0; t = 0; u = 0
  }
}

// Reopens the database, whose log extends to `kept`.
inline Recover(kept) {
  d_step {
    s = NUMBERS;
    last = 0;
    do
    :: s > 0 ->
       if
       :: log_of[s] != 0 && s > kept -> log_of[s] = 0
       :: else
       fi;
       if
       :: !tabled[s] && (log_of[s] == 0 || log_of[s] < live_log) -> row[s] = 0
       :: else
       fi;
       if
       :: row[s] != 0 && last == 0 -> last = s
       :: else
       fi;
       s--
    :: else -> break
    od;
    anchor_is_of_session = false;
    snapshot = false
  }
  Flush(true)
}

inline DeleteLogs() {
  d_step {
    s = 1;
    do
    :: s <= NUMBERS ->
       if
       :: log_of[s] < live_log -> log_of[s] = 0
       :: else
       fi;
       s++
    :: else -> break
    od;
    logs = logs & (255 << live_log);
    s = 0
  }
}

active proctype Database() {
  byte s, t, u, kept;
  atomic { file_number = 1; log = 1; live_log = 1; logs = 2 }
end:
  do
  :: atomic {
       last < NUMBERS ->
       last++;
       t = crashes + restores;
#ifdef MUTANT_SAME_BYTES_IN_ANOTHER_HISTORY
       if
       :: t = 0
       :: true
       fi;
#endif
       if
       :: row[last] = ROW(t)
       :: row[last] = OF_ANOTHER_FAMILY(t)
       fi;
       t = 0;
       tabled[last] = false;
       if
       :: log_of[last] = log
       :: unlogged < UNLOGGED -> unlogged++; log_of[last] = 0; excuse = true  // disableWAL
       fi
     }
  :: atomic { synced < last -> synced = last }
  :: atomic { events < EVENTS && last > 0 && table_last < last -> events++; Flush(true) }
  :: atomic { events < EVENTS && built && (logs & ((1 << live_log) - 1)) -> events++; excuse = true; DeleteLogs() }
  :: atomic {
       events < EVENTS && ingestions < INGESTIONS ->
       events++;
       ingestions++;
       last_ingested++;
       excuse = true;
       if
       :: last < NUMBERS -> last++; row[last] = INGESTED(last_ingested); log_of[last] = 0; tabled[last] = true
       :: !snapshot -> unnumbered_id = last_ingested
       fi;
       file_number++;
       ingested_file = file_number;
       ingested_id = last_ingested
     }
  :: atomic {
       events < EVENTS && tables != 0 ->
       events++;
       file_number++;
       last_table++;
       newest_table = last_table;
       tables = 1 << last_table;
       excuse = true;
#ifdef MUTANT_INGESTED_FILE_COMPACTED
       ingested_file = 0
#endif
     }
  :: atomic {
       events < EVENTS && !copied && restores == 0 ->
       events++;
       copied = true;
       s = 1;
       do
       :: s <= NUMBERS ->
          if
          :: tabled[s] || log_of[s] >= live_log ->
             copy_row[s] = row[s]; copy_tabled[s] = tabled[s]; copy_last = s
          :: else
          fi;
          copy_log_of[s] = (log_of[s] >= live_log -> log_of[s] : 0);
          s++
       :: else -> break
       od;
       s = 0;
       copy_last = (copy_last > last -> last : copy_last);
       copy_file_number = file_number;
       copy_log = log;
       copy_live_log = live_log;
       copy_tables = tables;
       copy_newest_table = newest_table;
       copy_table_last = table_last;
       copy_ingested_file = ingested_file;
       copy_ingested_id = ingested_id;
       copy_unnumbered_id = unnumbered_id
     }
  :: atomic {
       events < EVENTS && copied && built ->
       events++;
       restores++;
       copied = false;
       excuse = true;
       s = 1;
       do
       :: s <= NUMBERS ->
          row[s] = copy_row[s]; copy_row[s] = 0;
          log_of[s] = copy_log_of[s]; copy_log_of[s] = 0;
          tabled[s] = copy_tabled[s]; copy_tabled[s] = false;
          s++
       :: else -> break
       od;
       file_number = copy_file_number; copy_file_number = 0;
       log = copy_log; copy_log = 0;
       live_log = copy_live_log; copy_live_log = 0;
       logs = ((255 << live_log) & ((2 << log) - 1));
       tables = copy_tables; copy_tables = 0;
       newest_table = copy_newest_table; copy_newest_table = 0;
       table_last = copy_table_last; copy_table_last = 0;
       ingested_file = copy_ingested_file; copy_ingested_file = 0;
       ingested_id = copy_ingested_id; copy_ingested_id = 0;
       unnumbered_id = copy_unnumbered_id; copy_unnumbered_id = 0;
       copy_last = 0;
       Recover(NUMBERS)
     }
  :: atomic { events < EVENTS && crashes < CRASHES -> events++; crashes++; Recover(NUMBERS) }
  :: atomic {
       events < EVENTS && crashes < CRASHES && synced < last ->
       events++;
       crashes++;
       kept = last - 1;
       do
       :: kept > synced -> kept--
       :: break
       od;
       Recover(kept);
       kept = 0
     }
  od
}

// The rows that the process sees. Another process, which opens the database for reading, sees only
// rows in files.
inline Look() {
  d_step {
    s = 1;
    new_last = 0;
    do
    :: s <= NUMBERS ->
       new_row[s] = 0;
       if
       :: s <= last && (!other || tabled[s] || log_of[s] != 0) -> new_row[s] = row[s]; new_last = s
       :: else
       fi;
       s++
    :: else -> break
    od;
    new_unnumbered_id = unnumbered_id;
    s = 0
  }
}

// The records up to `at` in the file that has the last of them.
inline SetPlace(at) {
  d_step {
    new_at = at;
    new_log = log_of[at];
    new_set = 0;
    s = 1;
    do
    :: s <= at ->
       if
       :: log_of[s] == new_log -> new_set = new_set | (1 << s)
       :: else
       fi;
       s++
    :: else -> break
    od;
    s = 0
  }
}

inline TakeAnchor() {
  // Examines the records in the live log.
  d_step {
    s = 1;
    first = 0;
    complete = true;
    in_memory = false;
    do
    :: s <= new_last ->
       if
       :: log_of[s] >= live_log && first == 0 -> first = s
       :: log_of[s] == 0 && first != 0 -> complete = false
       :: else
       fi;
       if
       :: IN_FAMILY(s) && !tabled[s] && log_of[s] == 0 -> in_memory = true
       :: else
       fi;
       s++
    :: else -> break
    od;
    s = 0;
    complete = complete && first != 0;
#ifndef MUTANT_UNLOGGED_ROWS_BEFORE_THE_LOG
    complete = complete && !in_memory;
#endif
    tail = (new_last > 0 && log_of[new_last] >= live_log);
    new_ingested = ingested_file;
    new_ingested_id = ingested_id;
    new_table = 0
  }
  if
#ifndef MUTANT_UNLOGGED_ROWS_OF_ANOTHER_PROCESS
  :: other && in_memory ->
     // Some rows were not visible, so nothing is proven.
     new_log = log; new_at = 0; new_set = 0;
     new_table = UNPROVEN; new_fence = 255
#endif
  :: complete && !(other && in_memory) -> SetPlace(new_last)
  :: else ->
#ifndef MUTANT_UNLOGGED_ROWS_NOT_FLUSHED
     if
     :: !other -> Flush(false)
     :: else
     fi;
#endif
     if
     :: tail ->
        SetPlace(new_last);
#ifndef MUTANT_UNLOGGED_ROWS_PROVEN_BY_THE_LOG
        new_table = newest_table  // which has the rows that are not in the log
#endif
     :: else ->
        new_log = log;
        new_at = 0;
        new_set = 0;
        // The newest table file, if files have all rows.
        d_step {
          s = 1;
          in_memory = false;
          do
          :: s <= NUMBERS -> in_memory = in_memory || (s <= last && IN_FAMILY(s) && !tabled[s]); s++
          :: else -> break
          od;
          s = 0
        }
        if
#ifdef MUTANT_TABLE_BEFORE_THE_SEQUENCE_NUMBER
        :: !in_memory && (new_last == 0 || tabled[new_last]) -> new_table = newest_table
#else
        :: !in_memory && table_last == new_last -> new_table = newest_table
#endif
        :: else -> new_table = (new_last > 0 -> UNPROVEN : 0)
        fi
     fi
  fi;
  new_fence = (new_fence != 0 || complete -> new_fence : log);
  new_fence = (ingested_file > 0 && ingested_file >= new_fence -> ingested_file + 1 : new_fence);
  first = 0; complete = false; tail = false; in_memory = false
}

// CheckContinues, NewestIngestedFile and UpdateLog::Open: whether the index is accepted for this
// database.
inline Check() {
  d_step {
    fits = true;
    if
    :: !other && anchor_is_of_session
    :: index_last == 0
#ifdef MUTANT_NO_ANCHOR
    :: index_last > 0
#endif
    :: else ->
       if
       :: anchor_at > 0 ->
          // Its file must have those records, and no others before that place.
          s = 1;
          fits = (logs >> anchor_log) & 1;
          do
          :: s <= anchor_at ->
             if
             :: (log_of[s] == anchor_log) != ((anchor_set >> s) & 1) -> fits = false
#ifndef MUTANT_LOG_WITHOUT_CHECKSUM
             :: log_of[s] == anchor_log && row[s] != index_row[s] -> fits = false
#endif
             :: else
             fi;
             s++
          :: else -> break
          od;
          fits = fits && (anchor_table == 0 || ((tables >> anchor_table) & 1));
#ifdef MUTANT_LOG_GONE_IS_NO_REFUSAL
          fits = fits || ((logs >> anchor_log) & 1) == 0;
#endif
       :: else -> fits = (anchor_table != 0 && ((tables >> anchor_table) & 1))
       fi;
    fi;
#ifndef MUTANT_OLD_INGESTED_FILE_NOT_LOOKED_FOR
    if
    :: (other || !anchor_is_of_session) && anchor_ingested != 0 && anchor_ingested_id != ingested_id &&
         (anchor_at == 0 || anchor_log < anchor_fence) ->
       fits = false
    :: else
    fi;
#endif
#ifndef MUTANT_NEW_INGESTED_FILE_NOT_LOOKED_FOR
    if
    :: ingested_file > anchor_ingested -> fits = false
    :: else
    fi;
#endif
    if
    :: new_last < index_last -> fits = false
    :: else
    fi;
    // Newer log files must not have records of the index.
    s = 1;
    do
    :: s <= index_last ->
       if
       :: anchor_log != 0 && log_of[s] > anchor_log -> fits = false
       :: else
       fi;
       s++
    :: else -> break
    od;
    // All later records must be in the log, without a gap. An IndexedDB also has the batches
    // without a log of its session.
    s = (live -> new_last + 1 : index_last + 1);
    do
    :: s <= new_last ->
#ifdef MUTANT_GAPS_PASSED_OVER
       if
       :: log_of[s] == 0 -> new_row[s] = 0
       :: else
       fi;
#else
       if
       :: log_of[s] == 0 -> fits = false
       :: else
       fi;
#endif
       s++
    :: else -> break
    od;
    s = 0
  }
}

// UnloggedWrites::MakeDurable, and the place of a state whose last rows may not be in the log.
inline MakeDurable() {
  d_step {
    s = 1;
    first = 0;  // the last record
    tail = false;  // there are new rows without a log, in memory or not
    do
    :: s <= new_last ->
       if
       :: log_of[s] != 0 -> first = s
       :: log_of[s] == 0 && s > index_last -> tail = true
       :: else
       fi;
       s++
    :: else -> break
    od;
    s = 0
  }
  if
#ifndef MUTANT_LIVE_ROWS_STORED_BEFORE_THEY_ARE_FLUSHED
  :: tail ->
     Flush(true);
#ifndef MUTANT_LIVE_ROWS_PROVEN_BY_THE_LOG
     new_table = newest_table;
     new_fence = log
#endif
#endif
  :: else
  fi;
  if
#ifdef MUTANT_LIVE_STATE_PROVEN_BY_AN_OLDER_RECORD
  :: first > 0 -> SetPlace(first)
#else
  :: first > 0 && first == new_last -> SetPlace(first)
#endif
  :: else ->
     new_log = log;
     new_at = 0;
     new_set = 0;
     new_table = (table_last == new_last -> newest_table : UNPROVEN)
  fi;
  first = 0; tail = false
}

inline Sync() {
#ifndef MUTANT_LOG_NOT_SYNCED
  synced = (synced < last -> last : synced)
#else
  skip
#endif
}

inline Publish() {
  d_step {
    s = 1;
    do
    :: s <= NUMBERS -> index_row[s] = new_row[s]; s++
    :: else -> break
    od;
    s = 0;
    built = true;
    index_last = new_last;
    index_unnumbered_id = new_unnumbered_id;
    anchor_is_of_session = !other;
    anchor_log = new_log;
    anchor_at = new_at;
    anchor_set = new_set;
    anchor_table = new_table;
    anchor_ingested = new_ingested;
    anchor_ingested_id = new_ingested_id;
    anchor_fence = new_fence
  }
}

inline Forget() {
  d_step {
    s = 1;
    do
    :: s <= NUMBERS -> new_row[s] = 0; s++
    :: else -> break
    od;
    s = 0;
    new_last = 0; new_unnumbered_id = 0; new_log = 0; new_at = 0; new_set = 0; new_table = 0;
    new_ingested = 0; new_ingested_id = 0; new_fence = 0; fits = false; other = false;
    live = false;
    snapshot = false
  }
}

// Work of the database between its last examination and the publishing could equally happen
// afterwards, so these are one step.
active proctype Index() {
  byte s, t, u, first;
  byte new_row[NUMBERS + 1];
  byte new_last, new_unnumbered_id, new_log, new_at, new_set, new_table, new_ingested, new_ingested_id, new_fence;
  bool complete, tail, in_memory, fits, other, live;

end:
  do
  // SecondaryIndex::Build.
  :: atomic { !built && !snapshot -> Look(); snapshot = true }
  :: atomic {
       !built ->
       if
       :: snapshot
       :: !snapshot -> other = true; Look()  // a process that keeps the database open for reading
       fi;
       TakeAnchor();
       Sync();
       Publish();
       // Without a table, nothing proves the history.
       excuse = excuse || anchor_table == UNPROVEN;
       Forget()
     }
  // The build ended with its process.
  :: atomic { !snapshot && new_last > 0 -> Forget() }
  // SecondaryIndex::CatchUp.
  :: atomic {
       built ->
       if
       :: other = false
       :: other = true
       fi;
       Look();
       if
       :: !other && anchor_is_of_session -> live = true  // IndexedDB
       :: live = false
       fi;
       Check();
       if
       :: !fits -> assert(excuse)
       :: else ->
          // The index is served.
          d_step {
            s = 1;
            do
            :: s <= new_last ->
               if
               :: s <= index_last -> new_row[s] = index_row[s]
               :: else
               fi;
               assert(SEEN(new_row[s]) == SEEN(row[s]));
               s++
            :: else -> break
            od;
            s = 0;
            assert(index_unnumbered_id == unnumbered_id)
          }
          new_ingested = anchor_ingested;
          new_ingested_id = anchor_ingested_id;
          new_table = anchor_table;
          new_fence = anchor_fence;
          if
          :: new_last > index_last ->
             if
             :: live -> MakeDurable()
             :: else -> SetPlace(new_last)
             fi;
             if
#ifdef MUTANT_TABLE_FORGOTTEN_TOO_EARLY
             :: new_table = 0
#else
             :: new_at > 0 && new_log >= new_fence -> new_table = 0
             :: else
#endif
             fi;
             Sync();
             Publish()
          :: else  // nothing to store
          fi
       fi;
       Forget()
     }
  od
}
