// Changes of an index's directory: IndexDirectory (index/files/index_directory.cc) and its user
// IndexWriter (engine/version/index_writer.cc), with concurrent readers (OpenCurrentVersion),
// killed processes, power losses and failing syncs.
//
// A file system keeps synced data. If names were changed after their directory was synced, each may
// have any of its values since then after a power loss. A rename is atomic. Unsynced bytes are torn
// or whole.

#ifndef FILES
#define FILES 3  // numbers that data files can have
#endif
#define MANIFESTS 5
#ifndef LOSSES
#define LOSSES 2  // of power
#endif
#ifndef KILLS
#define KILLS 1  // of the writer's process
#endif
#ifndef ERRORS
#define ERRORS 1  // syncs that fail
#endif
#ifndef OPENINGS
#define OPENINGS 1  // by the reader
#endif

#define TORN 0
#define WRITTEN 1
#define SYNCED 2

// A data file's name is absent (0), or of one of two inodes (1, 2). `may` has a bit for each value
// that a power loss may restore.
byte name[FILES];
byte may[FILES] = 1;
byte bytes[8];  // of inode i of name f, at 2 * f + i - 1

// MANIFEST and MANIFEST.tmp; a rename changes both: 8 * inode of MANIFEST + inode of
// MANIFEST.tmp.
byte names;
byte may_names[6];  // other values that a power loss may restore
byte may_names_count;
byte manifest_bytes[MANIFESTS];
byte manifest_live[MANIFESTS];  // 2 bits per name: the inode that it must have
byte manifest_version[MANIFESTS];
byte manifest_next[MANIFESTS];

// whether the directory exists, and whether its name in its parent is durable
bool made, made_durably;

byte reported;  // the last version that was reported as durable
byte losses, kills, errors;

#define MANIFEST (names >> 3)
#define TEMPORARY (names & 7)
#define LIVE(live, f) (((live) >> (2 * (f))) & 3)
#define WITH(f, inode) ((inode) << (2 * (f)))

// Sets a name to another value, which may be on disk or not.
inline Name(f, value) {
  name[f] = value;
  may[f] = may[f] | (1 << value);
}

// A set: in ascending order.
inline Names(value) {
  d_step {
    byte at_ = 0;
    byte shifted_ = 0;
    byte put_ = names;
    do
    :: at_ < may_names_count && may_names[at_] < put_ -> at_++
    :: else -> break
    od;
    if
    :: at_ < may_names_count && may_names[at_] == put_ -> skip
    :: else ->
       do
       :: at_ < may_names_count ->
          shifted_ = may_names[at_];
          may_names[at_] = put_;
          put_ = shifted_;
          at_++
       :: else -> break
       od;
       may_names[at_] = put_;
       may_names_count++
    fi;
    names = value;
    at_ = 0;
    put_ = 0;
    shifted_ = 0
  }
}

inline SyncNames() {
  d_step {
    i = 0;
    do
    :: i < FILES -> may[i] = 1 << name[i]; i++
    :: else -> break
    od;
    do
    :: may_names_count > 0 -> may_names_count--; may_names[may_names_count] = 0
    :: else -> break
    od;
    i = 0
  }
}

// Finds an inode without a name, now and after any power loss.
inline FreeManifest(inode) {
  d_step {
    inode = 1;
    do
    :: inode < MANIFESTS ->
       i = 0;
       if
       :: MANIFEST == inode || TEMPORARY == inode -> i = 99
       :: else
       fi;
       do
       :: i < may_names_count ->
          if
          :: (may_names[i] >> 3) == inode || (may_names[i] & 7) == inode -> i = 99
          :: else -> i++
          fi
       :: else -> break
       od;
       if
       :: i < 99 -> break
       :: else -> inode++
       fi
    :: else -> break
    od;
    i = 0;
    assert(inode < MANIFESTS)
  }
}

// The state that an opening finds: the one before the first publish was reported, or a whole
// version.
inline CheckVersion() {
  d_step {
    if
    :: MANIFEST == 0 -> assert(reported == 0)
    :: else ->
       assert(manifest_bytes[MANIFEST] != TORN);
       assert(manifest_version[MANIFEST] >= reported);
       i = 0;
       do
       :: i < FILES ->
          if
          :: LIVE(manifest_live[MANIFEST], i) != 0 ->
             assert(name[i] == LIVE(manifest_live[MANIFEST], i));
             assert(bytes[2 * i + name[i] - 1] != TORN)
          :: else
          fi;
          i++
       :: else -> break
       od
    fi;
    i = 0
  }
}

// Inodes without a name are not part of the state.
inline Forget() {
  d_step {
    i = 0;
    do
    :: i < FILES ->
       if
       :: (may[i] & 2) == 0 -> bytes[2 * i] = TORN
       :: else
       fi;
       if
       :: (may[i] & 4) == 0 -> bytes[2 * i + 1] = TORN
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 1;
    do
    :: i < MANIFESTS ->
       if
       :: MANIFEST != i && TEMPORARY != i && may_names_count == 0 ->
          manifest_bytes[i] = TORN;
          manifest_live[i] = 0;
          manifest_version[i] = 0;
          manifest_next[i] = 0
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 0
  }
}

inline LosePower() {
  atomic {
    losses++;
    // Bytes.
    i = 0;
    do
    :: i < 2 * FILES ->
       if
       :: bytes[i] == WRITTEN -> bytes[i] = TORN
       :: bytes[i] == WRITTEN -> bytes[i] = SYNCED
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 1;
    do
    :: i < MANIFESTS ->
       if
       :: manifest_bytes[i] == WRITTEN -> manifest_bytes[i] = TORN
       :: manifest_bytes[i] == WRITTEN -> manifest_bytes[i] = SYNCED
       :: else
       fi;
       i++
    :: else -> break
    od;
    // Names.
    i = 0;
    do
    :: i < FILES ->
       if
       :: may[i] & 1 -> name[i] = 0
       :: may[i] & 2 -> name[i] = 1
       :: may[i] & 4 -> name[i] = 2
       fi;
       i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < may_names_count -> i++
    :: i < may_names_count -> names = may_names[i]; break
    :: i == may_names_count -> break
    od;
    // The directory with its contents.
    if
    :: !made_durably ->
       made = false;
       names = 0;
       i = 0;
       do
       :: i < FILES -> name[i] = 0; i++
       :: else -> break
       od
    :: made_durably = made_durably || made
    fi;
    SyncNames();
    Forget();
    CheckVersion()
  }
}

// Between any two steps the process may end, without or with a power loss.
#define MAY_END                                          \
  if                                                     \
  :: losses < LOSSES -> lost = true; goto ended          \
  :: kills < KILLS -> kills++; goto ended                \
  :: true                                                \
  fi

// Removes files that are not in `now`: those of `old` if that differs, otherwise all.
inline RemoveFiles(old, now) {
  do
  :: f < FILES ->
     atomic {
       if
       :: name[f] != 0 && LIVE(now, f) == 0 && (old == now || LIVE(old, f) != 0) -> MAY_END; Name(f, 0)
       :: else
       fi;
       f++
     }
  :: else -> break
  od;
  f = 0
}

// IndexDirectory::RemoveLeftovers.
inline RemoveLeftovers() {
  d_step {
    leftovers = (TEMPORARY != 0);
    i = 0;
    do
    :: i < FILES ->
       if
       :: name[i] != 0 && LIVE(live, i) == 0 -> leftovers = true
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 0
  }
#ifndef MUTANT_LEFTOVERS_WITHOUT_SYNC
  if
  :: leftovers && version > 0 ->
     atomic {
       MAY_END;
       if
       :: SyncNames()
       :: errors < ERRORS -> errors++; leftovers = false
       fi
     }
  :: else
  fi;
#endif
  if
  :: leftovers -> RemoveFiles(live, live); atomic { MAY_END; Names(MANIFEST << 3); leftovers = false }
  :: else
  fi
}

active proctype Writer() {
  byte i, f, inode;
  byte live, version, next;  // of the manifest that the writer has
  byte next_live;
  bool leftovers, failed, lost;

opened:
  // IndexDirectory::OpenForWrite. lock.pml models the lock.
  atomic {
    made = true;
    CheckVersion();
    live = (MANIFEST == 0 -> 0 : manifest_live[MANIFEST]);
    version = (MANIFEST == 0 -> 0 : manifest_version[MANIFEST]);
    next = (MANIFEST == 0 -> 0 : manifest_next[MANIFEST])
  }
  RemoveLeftovers();
  // IndexWriter::Store if there is nothing to store: reports the opened version as durable.
  atomic {
    MAY_END;
    if
#ifdef MUTANT_DURABLE_BY_OPENING
    :: true ->
#else
    :: SyncNames();
#endif
       reported = version
    :: errors < ERRORS -> errors++
    fi
  }

  do
  :: true -> break
  :: next < FILES && version < FILES ->
     // A new file: of the base or of changes.
     atomic {
       MAY_END;
       f = next;
#ifdef MUTANT_NUMBERS_USED_AGAIN
       f = 0;
       do
       :: f < FILES && name[f] != 0 -> f++
       :: else -> break
       od;
       if
       :: f == FILES -> f = 0; break
       :: else
       fi;
#endif
       if
       :: (may[f] & 2) == 0 -> inode = 1
       :: (may[f] & 2) != 0 && (may[f] & 4) == 0 -> inode = 2
       :: else -> goto done  // outside of the model's bounds
       fi;
       Name(f, inode);
       bytes[2 * f + inode - 1] = TORN;
       next = (f + 1 > next -> f + 1 : next)
     }
     atomic { MAY_END; bytes[2 * f + inode - 1] = WRITTEN }
#ifndef MUTANT_NO_FILE_SYNC
     atomic { MAY_END; bytes[2 * f + inode - 1] = SYNCED }
#endif
     atomic {
       if
       :: next_live = live | WITH(f, inode)  // Store
       :: next_live = WITH(f, inode)         // Merge
       fi;
       f = 0
     }

     // IndexDirectory::Publish.
#ifdef MUTANT_REMOVED_BEFORE_RENAME
     RemoveFiles(live, next_live);
#endif
     atomic {
       MAY_END;
#ifdef MUTANT_MANIFEST_IN_PLACE
       inode = MANIFEST;
       if
       :: inode == 0 -> FreeManifest(inode); Names(inode << 3)
       :: else
       fi;
#else
       inode = TEMPORARY;
       if
       :: inode == 0 -> FreeManifest(inode); Names((MANIFEST << 3) | inode)
       :: else
       fi;
#endif
       manifest_bytes[inode] = TORN;
     }
     atomic {
       MAY_END;
       manifest_bytes[inode] = WRITTEN;
       manifest_live[inode] = next_live;
       manifest_version[inode] = version + 1;
       manifest_next[inode] = next
     }
#ifndef MUTANT_NO_MANIFEST_SYNC
     atomic { MAY_END; manifest_bytes[inode] = SYNCED }
#endif
     inode = 0;
#ifndef MUTANT_NO_DIRECTORY_SYNC_BEFORE
     atomic {
       MAY_END;
       if
       :: SyncNames()
       :: errors < ERRORS -> errors++; failed = true
       fi
     }
#endif
#ifndef MUTANT_NO_PARENT_SYNC
     atomic {
       if
       :: !failed && version == 0 -> MAY_END; made_durably = true
       :: else
       fi
     }
#endif
     if
     :: failed -> next_live = 0  // and the previous version stays
     :: else ->
        atomic {
          MAY_END;
          version++;
#ifndef MUTANT_MANIFEST_IN_PLACE
          Names(TEMPORARY << 3)
#endif
        }
        atomic {
          MAY_END;
#ifndef MUTANT_NO_DIRECTORY_SYNC_BEHIND
          if
          :: SyncNames(); reported = version
          :: errors < ERRORS -> errors++; failed = true
          fi;
#else
          reported = version;
#endif
#ifdef MUTANT_REMOVED_THOUGH_SYNC_FAILED
          failed = false
#endif
        }
        if
        :: !failed -> RemoveFiles(live, next_live)
        :: else
        fi;
        atomic { live = next_live; next_live = 0 }
     fi;
     failed = false
  od;
  // ~IndexDirectory.
  RemoveLeftovers();
  if
  :: kills < KILLS -> kills++  // also a reason to open it again
  :: else -> goto done
  fi;

ended:
  if
  :: lost -> LosePower()
  :: else
  fi;
  d_step {
    lost = false;
    i = 0; f = 0; inode = 0; live = 0; version = 0; next = 0; next_live = 0;
    leftovers = false; failed = false
  }
  goto opened;
done:
  skip
}

// OpenCurrentVersion.
active proctype Reader() {
  byte i, live, version, version_before, losses_before, openings;

end:
  do
  :: atomic {
       openings < OPENINGS && MANIFEST != 0;
       openings++;
       losses_before = losses
     }
again:
     atomic {
       if
       :: losses != losses_before || MANIFEST == 0 -> goto closed
       :: else
       fi;
       assert(manifest_bytes[MANIFEST] != TORN);
       live = manifest_live[MANIFEST];
       version = manifest_version[MANIFEST]
     }
     do
     :: atomic {
          if
          :: losses != losses_before -> goto closed
          :: else
          fi;
          do
          :: i < FILES && LIVE(live, i) == 0 -> i++
          :: else -> break
          od;
          if
          :: i == FILES -> goto closed
          :: else
          fi;
          if
          :: name[i] == 0 ->
             // Missing: there is another version.
             assert(version != version_before);
#ifdef MUTANT_READER_WITHOUT_RETRY
             assert(false);
#endif
             version_before = version;
             i = 0;
             goto again
          :: else ->
             assert(name[i] == LIVE(live, i));
             assert(bytes[2 * i + name[i] - 1] != TORN)
          fi;
          i++
        }
     od;
closed:
     atomic { i = 0; live = 0; version = 0; version_before = 0; losses_before = 0 }
  od
}
