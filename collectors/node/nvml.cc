#include "collectors/node/nvml.h"

#include <dlfcn.h>

namespace tocsin::collectors::nvml {

// The newest form of a function first: older drivers have the others.
template <typename Function>
void Library::find(Function& into, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (into != nullptr) return;
    into = reinterpret_cast<Function>(::dlsym(handle_, name));
  }
}

core::Result<std::unique_ptr<Library>> Library::open(const std::string& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return core::Error{core::Code::not_found, why != nullptr ? why : file + " cannot be loaded"};
  }
  std::unique_ptr<Library> out(new Library(handle));
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  out->find(init, {"nvmlInit_v2", "nvmlInit"});
  out->find(shutdown, {"nvmlShutdown"});
  out->find(out->error_string_, {"nvmlErrorString"});
  out->find(out->count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  out->find(out->device, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  out->find(out->uuid, {"nvmlDeviceGetUUID"});
  if (init == nullptr || shutdown == nullptr || out->count == nullptr || out->device == nullptr ||
      out->uuid == nullptr) {
    return core::Error{core::Code::unavailable, file + " is no management library of NVIDIA's"};
  }
  if (const int code = init(); code != kSuccess) {
    const bool absent = code == kDriverNotLoaded || code == kNotFound;
    return core::Error{absent ? core::Code::not_found : core::Code::unavailable,
                       file + " would not begin: " + out->describe(code)};
  }
  out->shutdown_ = shutdown;
  out->find(out->utilization, {"nvmlDeviceGetUtilizationRates"});
  out->find(out->memory, {"nvmlDeviceGetMemoryInfo"});
  out->find(out->power, {"nvmlDeviceGetPowerUsage"});
  out->find(out->power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  out->find(out->temperature, {"nvmlDeviceGetTemperature"});
  out->find(out->throttled, {"nvmlDeviceGetCurrentClocksEventReasons",
                             "nvmlDeviceGetCurrentClocksThrottleReasons"});
  out->find(out->ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  out->find(out->mig_mode, {"nvmlDeviceGetMigMode"});
  out->find(out->mig_most, {"nvmlDeviceGetMaxMigDeviceCount"});
  out->find(out->mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  // Without a number it has a shorter record: no fallback.
  out->find(out->processes,
            {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  out->find(out->event_set, {"nvmlEventSetCreate"});
  out->find(out->free_event_set, {"nvmlEventSetFree"});
  out->find(out->register_events, {"nvmlDeviceRegisterEvents"});
  out->find(out->wait_event, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
  return out;
}

Library::~Library() {
  if (shutdown_ != nullptr) shutdown_();
  ::dlclose(handle_);
}

std::string Library::describe(int code) const {
  const char* words = error_string_ != nullptr ? error_string_(code) : nullptr;
  return words != nullptr ? words : "code " + std::to_string(code);
}

}  // namespace tocsin::collectors::nvml
