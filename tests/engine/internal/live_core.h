// The inside of an open database, for tests that look at what its public face does not show.
#pragma once

#include <memory>

#include "engine/internal/core.h"

namespace geardb::testing {

namespace live_core_internal {

// An explicit instantiation may name a private member; the friend hands it out.
template <auto Member>
struct Door {
  friend std::shared_ptr<Database::Impl> CoreBehind(const Database& database) {
    return database.*Member;
  }
};
std::shared_ptr<Database::Impl> CoreBehind(const Database& database);
template struct Door<&Database::impl_>;

}  // namespace live_core_internal

inline std::shared_ptr<engine::DatabaseCore> CoreOf(const Database& database) {
  return live_core_internal::CoreBehind(database);
}

}  // namespace geardb::testing
