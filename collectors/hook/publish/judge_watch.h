// Whether anybody judges what this process writes: asked now and then, for whoever looks.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/time.h"
#include "core/value.h"

namespace tocsin::hook {

/// Variable by which `tocsin run` says that it judges what is written below it.
inline constexpr const char* kJudgedVariable = "TOCSIN_JUDGED_BY";

/// Whether an engine of that prefix holds the journal at this moment: the lock of its group, which ends with its process.
bool engine_reads(const std::string& journal, const std::string& prefix);

/// How to find out. `ask` may block for a moment; nullopt: not known.
struct JudgeQuestion {
  std::function<std::optional<bool>()> ask;
  core::Duration first{};  // after the start
  bool quick = false;      // asked at the end, too, when it was not asked before
};

/// Lives on the sending thread; judged() may be called by all.
class JudgeWatch {
 public:
  static constexpr core::Duration kAgain = std::chrono::seconds(30);

  explicit JudgeWatch(JudgeQuestion question) : question_(std::move(question)) {}
  /// Nobody needs to be asked.
  void known() noexcept { answer_ = kYes; }
  /// Asks when it is time.
  void look(core::Duration now);
  /// The run is over.
  void last_look();
  /// true, false, or null: not known.
  [[nodiscard]] core::Value judged() const;

 private:
  enum Answer { kUnknown, kYes, kNo };
  void ask();

  JudgeQuestion question_;
  std::optional<core::Duration> next_;
  std::atomic<int> answer_{kUnknown};
};

}  // namespace tocsin::hook
