// What went wrong, in few codes; whether a retry can help is a property of the code.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace tocsin::core {

enum class Code {
  invalid_argument,     // the input is wrong; the same call will fail again
  not_found,            // a named thing does not exist
  failed_precondition,  // the state forbids it (fenced, closed, shared by another machine)
  permission_denied,    // credentials or ACLs refuse it
  unavailable,          // the other side is down or unreachable; retryable
  deadline_exceeded,    // no answer in time; retryable
  resource_exhausted,   // a queue or quota is full; retryable
  data_loss,            // stored bytes are damaged or gone
  cancelled,            // the caller gave up
  internal,             // our own defect
};

/// Name of the code in snake case, for logs and metric labels.
std::string_view to_string(Code code) noexcept;

/// True for unavailable, deadline_exceeded and resource_exhausted.
bool retryable(Code code) noexcept;

struct Error {
  Code code = Code::internal;
  std::string message;

  /// The same error with "context: " in front of its message.
  [[nodiscard]] Error in(std::string_view context) const {
    return {code, std::string(context) + ": " + message};
  }
  [[nodiscard]] bool retryable() const noexcept { return core::retryable(code); }
};

inline Error invalid_argument(std::string message) {
  return {Code::invalid_argument, std::move(message)};
}
inline Error unavailable(std::string message) { return {Code::unavailable, std::move(message)}; }
inline Error not_found(std::string message) { return {Code::not_found, std::move(message)}; }
inline Error internal_error(std::string message) { return {Code::internal, std::move(message)}; }

}  // namespace tocsin::core
