// Reads `commands` for one client, at no cost while nothing happens: of the clients of a node that
// want the same, one reads the topic by long poll and gives what comes to the others.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "collectors/hook/commands/command_share.h"
#include "core/mutex.h"
#include "core/record_source.h"
#include "core/result.h"

namespace tocsin::hook {

/// turn() and close() on one thread, the rest on any.
class CommandReader {
 public:
  enum class Role { none, leader, follower, alone };
  /// Opens the source; may wait a second. cancelled: not possible yet, and nothing is wrong.
  using OpenSource = std::function<core::Result<std::unique_ptr<core::RecordSource>>()>;
  /// After this long alone (the node's reader hung, or was another user's) it looks again.
  static constexpr std::chrono::seconds kLookAgain{60};

  /// `share`: the same text for all who may share a reader; empty: reads for itself only.
  /// `keys`: only records whose key begins so are taken and given on.
  CommandReader(std::string share, std::string keys, OpenSource open, CommandHandler take);
  CommandReader(const CommandReader&) = delete;
  CommandReader& operator=(const CommandReader&) = delete;
  ~CommandReader() { close(); }

  /// Waits for records at most about `at_most`, or until wake(). An error is worth telling; the
  /// next turn goes on.
  core::Status turn(std::chrono::milliseconds at_most);
  /// Ends the present turn, or else the next one, soon.
  void wake();
  /// Stops reading; the next client of the node takes over.
  void close();
  [[nodiscard]] Role role() const noexcept { return role_.load(); }

 private:
  void elect();
  void become(Role role);
  core::Status read_source(std::chrono::milliseconds at_most);

  const std::string share_;
  const std::string keys_;
  OpenSource open_;
  CommandHandler take_;
  Wakeup wakeup_;
  std::atomic<Role> role_{Role::none};
  std::unique_ptr<CommandServer> server_;
  std::unique_ptr<CommandFollower> leader_;
  std::chrono::steady_clock::time_point look_again_{};
  int elections_ = 0;  // in a row without an end
  std::unique_ptr<core::RecordSource> source_;
  core::Mutex mutex_;
  core::RecordSource* to_wake_ GUARDED_BY(mutex_) = nullptr;  // source_, for other threads
};

std::string_view to_string(CommandReader::Role role) noexcept;

}  // namespace tocsin::hook
