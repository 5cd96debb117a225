// Tables of the store. Internal to store.
#pragma once

#include "core/result.h"
#include "insights/store/database.h"

namespace tocsin::insights {

inline constexpr std::int64_t kStoreId = 0x544F4349;  // "TOCI": the file is one of ours
inline constexpr std::int64_t kStoreVersion = 2;      // of the tables

/// Makes the tables in an empty file, and those of version 1 anew. failed_precondition: another program's file, or of another
/// version.
core::Status prepare_store(StoreDatabase& database);

}  // namespace tocsin::insights
