// What tables take of the index budget before they hold a row, for errors that say how much is
// enough.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/env.h"
#include "base/status.h"
#include "engine/internal/core.h"
#include "engine/schema.h"

namespace geardb::engine {

/// What IndexMemory's errors call it.
inline constexpr const char* kIndexBudgetName = "budgets.index_bytes";

/// Whether it is index memory, or addresses of it, that was lacking.
bool IsOfIndexBudget(const Status& refused);

/// Makes a change of tables, once; for want of index memory again, until `deadline`, while a
/// dropped table that somebody still has may give some back.
Status TryWhileTablesLeave(DatabaseCore* core, Deadline deadline,
                           const std::function<Status()>& attempt);

/// What to say when `wanted`, a new table or one with a new priority table, was refused with
/// `refused`: where that is for want of index memory, ResourceExhausted with a budgets.index_bytes
/// that is enough beside what is used and all other tables. It is found by making the tables in
/// memory of their own, with larger and larger budgets. Takes the tables' state mutexes.
Status NameIndexBudget(const Status& refused, const DatabaseCore& core, const TableSpec& wanted);

/// What to say when an open of the database in `directory` with `budget_bytes` of index was refused
/// with `refused`: where that is for want of index memory, ResourceExhausted with what it used when
/// it was open last, or, if that is not known or less, with twice the budget.
Status NameIndexBudget(const Status& refused, Env* env, const std::string& directory,
                       uint64_t budget_bytes);

}  // namespace geardb::engine
