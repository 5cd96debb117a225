#include "app/process/exit_code.h"

namespace tocsin::app {

int exit_code(const core::Error& error) {
  switch (error.code) {
    case core::Code::unavailable:
    case core::Code::deadline_exceeded:
      return kUnreachable;
    case core::Code::invalid_argument:
      return kConfiguration;
    case core::Code::resource_exhausted:
      return kTemporary;
    default:
      return kFailed;
  }
}

}  // namespace tocsin::app
