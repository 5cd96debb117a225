// What `tocsin run` above this process wants to know of the workers below it, in a file of the same
// machine: one line of JSON per fact, appended. Without `tocsin run` there is none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "collectors/hook/identity/identity.h"
#include "core/value.h"

namespace tocsin::hook {

/// Variable that names the file.
inline constexpr const char* kReportVariable = "TOCSIN_REPORT";

class RunReport {
 public:
  /// Empty path: nothing is ever written.
  explicit RunReport(std::string path) : path_(std::move(path)) {}
  /// `judges`: rules in this process say what they find.
  void opened(const Identity& identity, std::uint64_t incarnation, bool judges = false) const;
  /// The script has acknowledged a stop and is about to end.
  void stopping(std::uint64_t incarnation) const;
  /// `told`: the end was delivered, nobody else needs to tell it.
  void ended(std::uint64_t incarnation, bool told) const;

 private:
  void append(const core::ValueMap& fact) const;
  std::string path_;
};

}  // namespace tocsin::hook
