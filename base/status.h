// Status and Result<T>: how every operation of GearDB reports that it failed.
//
// Nothing in the library throws. An operating error (I/O, a full budget, a bad argument) is a
// Status whose text names the table, file, offset, what was expected and what was found. A bug of
// our own is a GEARDB_CHECK (base/check.h), never a Status.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/concatenate.h"

namespace geardb {

/// What kind of failure a Status reports. The values appear in `--json` output: frozen.
enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument = 1,     ///< The caller's mistake; no state has changed.
  kNotFound = 2,            ///< No such table, column, trajectory, row, tag or file.
  kAlreadyExists = 3,       ///< A table, tag or database of that name is there.
  kFailedPrecondition = 4,  ///< Right call, wrong moment: closed, read-only, owned by another.
  kResourceExhausted = 5,   ///< A budget, the log's bound or the disk is full; no thread is left.
  kDeadlineExceeded = 6,    ///< Waited until the deadline; the text says for what.
  kCancelled = 7,           ///< The object waited on was closed.
  kCorruption = 8,          ///< Bytes from disk or wire are not what was written.
  kIoError = 9,             ///< The operating system refused; the text has errno's words.
  kUnsupported = 10,        ///< Known, but not in this build, format version or file system.
  kInternal = 11,           ///< A limit of the implementation that should not have been met.
  kOutOfRange = 12,         ///< Past the end: an epoch has no items left.
};

/// "InvalidArgument" and so on.
std::string_view StatusCodeName(StatusCode code);

/// The outcome of an operation: OK, or a code with a message. One pointer wide, cheap when OK.
/// Immutable once made; copies share the message, so it may be read from many threads.
class [[nodiscard]] Status {
 public:
  Status() = default;  ///< OK.
  Status(StatusCode code, std::string message);

  static Status Ok() { return Status(); }

  /// Each factory concatenates its arguments: `Status::NotFound("table '", name, "'")`.
#define GEARDB_STATUS_FACTORY(Name)                            \
  template <typename... Parts>                                 \
  static Status Name(const Parts&... parts) {                  \
    return Status(StatusCode::k##Name, Concatenate(parts...)); \
  }
  GEARDB_STATUS_FACTORY(InvalidArgument)
  GEARDB_STATUS_FACTORY(NotFound)
  GEARDB_STATUS_FACTORY(AlreadyExists)
  GEARDB_STATUS_FACTORY(FailedPrecondition)
  GEARDB_STATUS_FACTORY(ResourceExhausted)
  GEARDB_STATUS_FACTORY(DeadlineExceeded)
  GEARDB_STATUS_FACTORY(Cancelled)
  GEARDB_STATUS_FACTORY(Corruption)
  GEARDB_STATUS_FACTORY(IoError)
  GEARDB_STATUS_FACTORY(Unsupported)
  GEARDB_STATUS_FACTORY(Internal)
  GEARDB_STATUS_FACTORY(OutOfRange)
#undef GEARDB_STATUS_FACTORY

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : ""; }

  /// "OK", or "NotFound: table 'x'".
  std::string ToString() const;

  /// The same failure with `context` and ": " before its message.
  Status WithContext(std::string_view context) const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

std::ostream& operator<<(std::ostream& out, const Status& status);

/// Prints the error of a Result that was asked for its value, and aborts the process.
[[noreturn]] void ValueOfError(const Status& error);

/// A T, or the Status that says why there is none. Whoever asks for the value without a look at
/// ok() says that no error can happen: if one did, it is printed and the process aborted.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit, as in `return value;`
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit
    GEARDB_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    if (!ok()) ValueOfError(status_);
    return *value_;
  }
  const T& value() const& {
    if (!ok()) ValueOfError(status_);
    return *value_;
  }
  T&& value() && {
    if (!ok()) ValueOfError(status_);
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace geardb

#define GEARDB_JOIN_INNER(a, b) a##b
#define GEARDB_JOIN(a, b) GEARDB_JOIN_INNER(a, b)

/// Leaves the function with the status of `expression` unless it is OK.
#define GEARDB_RETURN_IF_ERROR(expression)           \
  do {                                               \
    ::geardb::Status geardb_status_ = (expression);  \
    if (!geardb_status_.ok()) return geardb_status_; \
  } while (false)

/// `GEARDB_ASSIGN_OR_RETURN(auto file, env->Open(path));`
#define GEARDB_ASSIGN_OR_RETURN(declaration, expression) \
  GEARDB_ASSIGN_OR_RETURN_INNER(GEARDB_JOIN(geardb_result_, __LINE__), declaration, expression)
#define GEARDB_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return result.status();                            \
  declaration = std::move(result).value()
