// The rules inside this process: libtocsin_engine.so.0, loaded when rules are asked for and only
// then (rules/embedded/tocsin_engine.h). Its faults end here: without it the hook goes on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"
#include "rules/embedded/tocsin_engine.h"

namespace tocsin::hook {

/// Functions of the loaded library.
struct EngineLibrary;

/// Thread-safe.
class JudgeLink {
 public:
  using TakeCommand = std::function<void(const core::RecordView&)>;

  /// Loads and starts. `rules` and `stop` as tocsin_engine_options has them; `take` is called on the
  /// judging thread. not_found: there is no such library; invalid_argument in the engine's words.
  static core::Result<std::unique_ptr<JudgeLink>> open(const std::string& rules,
                                                       const std::string& stop, TakeCommand take);
  JudgeLink(const JudgeLink&) = delete;
  JudgeLink& operator=(const JudgeLink&) = delete;
  ~JudgeLink();

  /// A record on its way to the transport; those of topic telemetry are judged. `now`: its time when
  /// it has none of its own.
  void offer(const core::OutRecord& record, core::WallTime now) noexcept;
  /// Processor time that judging took since the last call. One thread.
  core::Duration take_cost();
  /// See tocsin_engine_issues, tocsin_engine_wait, tocsin_engine_wake, tocsin_engine_catch_up.
  [[nodiscard]] std::string issues(std::uint64_t since) const;
  [[nodiscard]] bool wait(std::uint64_t seen, std::chrono::milliseconds timeout) const;
  void wake() const;
  [[nodiscard]] bool catch_up(std::chrono::milliseconds timeout) const;
  /// The training is over: judges what is left; no command comes any more.
  bool finish(std::chrono::milliseconds timeout);
  /// Counters, as JSON.
  [[nodiscard]] core::Value stats() const;

 private:
  JudgeLink(const EngineLibrary& library, TakeCommand take);
  static void on_command(void* self, const char* key, std::size_t key_length, const char* value,
                         std::size_t value_length, const char* const* headers,
                         std::size_t count) noexcept;

  const EngineLibrary& library_;
  TakeCommand take_;
  tocsin_engine* engine_ = nullptr;
  std::atomic<std::int64_t> charged_ = 0;  // ns, of take_cost()
};

}  // namespace tocsin::hook
