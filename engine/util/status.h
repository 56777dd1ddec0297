#pragma once

#include "cairn/rocksdb_status.h"
