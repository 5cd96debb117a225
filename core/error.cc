#include "core/error.h"

namespace tocsin::core {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::not_found:
      return "not_found";
    case Code::failed_precondition:
      return "failed_precondition";
    case Code::permission_denied:
      return "permission_denied";
    case Code::unavailable:
      return "unavailable";
    case Code::deadline_exceeded:
      return "deadline_exceeded";
    case Code::resource_exhausted:
      return "resource_exhausted";
    case Code::data_loss:
      return "data_loss";
    case Code::cancelled:
      return "cancelled";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

bool retryable(Code code) noexcept {
  return code == Code::unavailable || code == Code::deadline_exceeded ||
         code == Code::resource_exhausted;
}

}  // namespace tocsin::core
