// What came of the issues of one run: who was told, and whether it was stopped.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "app/report/run_report.h"
#include "app/view/delivery_history.h"
#include "app/view/topic_view.h"

namespace tocsin::app::report {

class Aftermath {
 public:
  explicit Aftermath(const RunReport& about);

  /// Any record of the topics of the view, in the order of its partition; also of other runs.
  void apply(const core::RecordView& record);
  /// Once everything was read.
  void tell(RunReport& into);

 private:
  core::RunUid run_;
  std::uint32_t attempt_;
  std::set<std::string> issues_;  // keys
  DeliveryHistory messages_;
  TopicView view_;
};

/// Who was told of the run's issues, what was done, and what may be done next.
Section aftermath_section(const RunReport& report);

}  // namespace tocsin::app::report
