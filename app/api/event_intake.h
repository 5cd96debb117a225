// Events of other producers, on their way to the topic of issues.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_route.h"
#include "app/api/api_writer.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// The events of one request. Those that are good are written, also beside others that are not.
class EventIntake {
 public:
  /// An issue that may stop a run (it names the run's attempt) is taken of a stopper only.
  /// `at`: when the request came, which is the time of an event that gives none.
  EventIntake(const ApiCall& call, core::WallTime at) : call_(call), at_(at) {}

  /// One event in CloudEvents' structured form, or why there is none.
  void take(const core::Result<core::Value>& event);
  /// `answered` once the broker has them. 400: some were refused, and why; the others are written.
  /// 503: they are not written, or not all.
  HttpAnswer write(ApiWriter& writer, int answered);

 private:
  core::Status check(core::Value event);
  [[nodiscard]] core::OutRecord audit() const;

  const ApiCall& call_;
  core::WallTime at_;
  std::vector<core::OutRecord> records_;
  core::ValueList posted_;            // keys of the first issues
  std::vector<std::string> refused_;  // sentences, the first few
  std::size_t taken_ = 0;             // events, refused ones too
};

}  // namespace tocsin::app
