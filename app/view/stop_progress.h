// How far a stop has come, from what ranks, engine and agents say of it. Pure; for who waits.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::app {

enum class StopEnd {
  open,      // asked, and not over
  stopped,   // every rank has stopped, or the job has ended
  replaced,  // another attempt runs now: it is not asked
  refused,   // every rank has refused it
  failed,    // people were told so (stop_failed)
  expired,   // nobody has taken it in time
};

class StopProgress {
 public:
  /// `world_size`: ranks that have to answer; 0 counts as one.
  StopProgress(core::Command command, std::uint32_t world_size);

  /// True: a further revision of this stop, for a later step or for workers that started later.
  bool on_command(const core::Command& command);
  /// True: an answer to this stop.
  bool on_ack(const core::Ack& ack);
  /// Of the run, from after the command.
  void on_job(const core::JobEvent& event);
  void on_issue(const core::Issue& issue);

  [[nodiscard]] StopEnd end(core::WallTime now) const;
  /// One sentence: "2 of 4 ranks have stopped, 2 obey".
  [[nodiscard]] std::string sentence(core::WallTime now) const;
  [[nodiscard]] bool answered() const noexcept { return !heard_.empty(); }
  [[nodiscard]] const core::Command& command() const noexcept { return command_; }
  [[nodiscard]] const std::string& outcome() const noexcept { return outcome_; }

 private:
  core::Command command_;
  std::uint32_t world_size_;
  std::set<std::uint32_t> heard_;
  std::set<std::uint32_t> obeying_;
  std::set<std::uint32_t> stopped_;
  std::map<std::uint32_t, std::string> refused_;  // rank → why, of the newest revision
  bool ended_ = false;
  std::string outcome_;  // of the job, once it has ended
  std::uint32_t newer_ = 0;
  std::string failure_;
  std::string platform_;  // what was asked of it
};

}  // namespace tocsin::app
