// NVIDIA's management library, loaded while the program runs: nothing of it is needed to build, and a
// machine without it is a normal one.
//
// The types and numbers below are those of the public NVML API reference; only what is read is
// declared. Every function may be missing: drivers are older and newer than this text.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "core/result.h"

namespace tocsin::collectors::nvml {

using Device = struct DeviceTag*;
using EventSet = struct EventSetTag*;

/// nvmlReturn_t. What is not named here counts as any other failure.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kGpuIsLost = 15,
};

struct Utilization {  // nvmlUtilization_t: per cent of the last sample period
  unsigned gpu = 0;
  unsigned memory = 0;
};
struct Memory {  // nvmlMemory_t: bytes
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};
struct ProcessInfo {  // nvmlProcessInfo_t of …_v2 and …_v3
  unsigned pid = 0;
  unsigned long long used_memory = 0;  // kUnknownMemory: not known
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};
struct EventData {  // nvmlEventData_t
  Device device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0;  // of kXid: its number
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

inline constexpr unsigned long long kUnknownMemory = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned long long kXid = 8;                // nvmlEventTypeXidCriticalError
inline constexpr unsigned kUuidBytes = 96;                   // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr int kTemperatureGpu = 0;                    // NVML_TEMPERATURE_GPU
inline constexpr int kCorrected = 0;                         // NVML_MEMORY_ERROR_TYPE_CORRECTED
inline constexpr int kUncorrected = 1;                       // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr int kAggregate = 1;                         // NVML_AGGREGATE_ECC: over its life

/// Why the clocks are lower than they could be (nvmlClocksThrottleReason…, since renamed
/// …EventReason…): bits.
inline constexpr unsigned long long kPowerCap = 0x4;
inline constexpr unsigned long long kHardware = 0x8 | 0x80;  // slowdown by hardware, power brake
inline constexpr unsigned long long kThermal = 0x20 | 0x40;  // in software and in hardware

/// The loaded and initialised library. Not thread-safe; closes what it opened.
class Library {
 public:
  /// not_found: there is no such library here, or no driver that it could speak to; unavailable: it
  /// is there and would not begin, with its own words.
  static core::Result<std::unique_ptr<Library>> open(const std::string& file);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The library's words for a code, or its number.
  [[nodiscard]] std::string describe(int code) const;

  // Any of these is null where the library has no such function.
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned index, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned* milliwatts) = nullptr;
  int (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  int (*temperature)(Device, int sensor, unsigned* celsius) = nullptr;
  int (*throttled)(Device, unsigned long long* reasons) = nullptr;
  int (*ecc_errors)(Device, int type, int counter, unsigned long long*) = nullptr;
  int (*mig_mode)(Device, unsigned* now, unsigned* pending) = nullptr;
  int (*mig_most)(Device, unsigned* count) = nullptr;
  int (*mig_device)(Device, unsigned index, Device*) = nullptr;
  int (*processes)(Device, unsigned* count, ProcessInfo*) = nullptr;
  int (*event_set)(EventSet*) = nullptr;
  int (*free_event_set)(EventSet) = nullptr;
  int (*register_events)(Device, unsigned long long types, EventSet) = nullptr;
  int (*wait_event)(EventSet, EventData*, unsigned milliseconds) = nullptr;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  template <typename Function>
  void find(Function& into, std::initializer_list<const char*> names);

  void* handle_;
  int (*shutdown_)() = nullptr;  // null until it is initialised
  const char* (*error_string_)(int) = nullptr;
};

}  // namespace tocsin::collectors::nvml
