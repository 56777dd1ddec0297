// The right to change an index's directory: LOCK. PosixFileSystem::Lock
// (index/files/posix_file_system.cc) takes it; IndexDirectory (index/files/index_directory.cc)
// creates and removes it and the directory. Processes build, publish, give up, and are killed at
// any instant. publication.pml models power losses.

#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef OPENINGS
#define OPENINGS 4  // in total
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define INODES 5

bool directory, manifest;  // whether they exist
bool file;  // a written and unpublished file
byte lock_name;  // the inode with the name LOCK; 0 if there is none
bool held[INODES];  // whether an inode is locked by flock
byte users[INODES];  // number of processes that have it open
byte openings, kills, writers;

#define MAY_END                                \
  if                                           \
  :: kills < KILLS -> kills++; goto killed     \
  :: true                                      \
  fi

inline Close() {
  atomic {
    if
    :: inode != 0 ->
       users[inode]--;
       if
       :: locked -> held[inode] = false; locked = false
       :: else
       fi;
       inode = 0
    :: else
    fi
  }
}

proctype Process() {
  byte inode;
  bool made_directory, made_file, locked, writing, published;

end:
  do
  :: atomic { openings < OPENINGS; openings++ }
again:
     // IndexDirectory::TakeLock.
     atomic { MAY_END; made_directory = !directory; directory = true }
     // PosixFileSystem::Lock.
again_at_the_lock:
     atomic {
       MAY_END;
       if
       :: !directory -> made_directory = false; goto again  // the previous writer has just removed it
       :: else
       fi;
       made_file = (lock_name == 0);
       if
       :: made_file ->
          lock_name = 1;
          do
          :: users[lock_name] > 0 -> lock_name++
          :: else -> break
          od;
          assert(lock_name < INODES)
       :: else
       fi;
       inode = lock_name;
       users[inode]++
     }
#ifndef MUTANT_NO_LOCK
     atomic {
       MAY_END;
       if
       :: held[inode] ->
          // Unavailable.
#ifndef MUTANT_REFUSED_CLEANS_UP
          made_directory = false;
          made_file = false;
          Close();
          goto closed
#endif
       :: else -> held[inode] = true; locked = true
       fi
     }
#ifndef MUTANT_LOCK_FILE_NOT_LOOKED_AT_AGAIN
     atomic {
       MAY_END;
       if
       :: locked && lock_name != inode -> Close(); goto again_at_the_lock
       :: else
       fi
     }
#endif
#else
     locked = true;
#endif
     // IndexDirectory::ReadCurrent and RemoveLeftovers.
     atomic {
       MAY_END;
       if
       :: locked ->
          writers++;
          writing = true;
          assert(writers == 1);
          assert(directory);
          published = manifest
       :: else
       fi;
       file = false
     }
     if
     :: locked ->
        do
        :: true -> break  // the build fails
        :: atomic { MAY_END; file = true }
           atomic {
             MAY_END;
             // Publish, which checks the file.
             assert(directory && lock_name == inode && file);
             manifest = true;
             published = true;
             file = false  // it is live
           }
           break
        od
     :: else
     fi;

     // ~IndexDirectory.
     atomic { MAY_END; file = false }
#ifdef MUTANT_LOCK_LET_GO_FIRST
     if
     :: locked -> atomic { writers--; writing = false; Close() }
     :: else
     fi;
#endif
     if
     :: !published ->
        atomic {
          MAY_END;
          if
          :: made_file ->
             lock_name = 0;
             // A process that arrives now has its own lock file, so the directory is not empty.
             if
             :: writing -> writers--; writing = false
             :: else
             fi
          :: else
          fi
        }
        atomic {
          MAY_END;
          if
          :: made_directory && lock_name == 0 && !file && !manifest -> directory = false
          :: else
          fi
        }
     :: else
     fi;
killed:
     atomic {
       if
       :: writing -> writers--; writing = false
       :: else
       fi;
       Close()
     }
closed:
     skip;
     d_step { made_directory = false; made_file = false; published = false }
  od
}

init {
  atomic {
    byte each = 0;
    do
    :: each < PROCESSES -> run Process(); each++
    :: else -> break
    od
  }
}
