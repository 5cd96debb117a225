#include "collectors/hook/commands/command_reader.h"

#include "core/topics.h"

#include <poll.h>

#include <utility>

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kElectAgain{20};  // the name is taken, and nobody answers yet
constexpr int kElections = 50;           // then somebody holds it who never will
constexpr milliseconds kReopenAfter{1'000};
constexpr milliseconds kReadAgain{200};
constexpr milliseconds kCloseSource{100};

void wait(Wakeup& wakeup, milliseconds time) {
  pollfd waited{wakeup.descriptor(), POLLIN, 0};
  (void)poll(&waited, 1, static_cast<int>(time.count()));
  wakeup.take();
}

}  // namespace

std::string_view to_string(CommandReader::Role role) noexcept {
  switch (role) {
    case CommandReader::Role::leader:
      return "leader";
    case CommandReader::Role::follower:
      return "follower";
    case CommandReader::Role::alone:
      return "alone";
    case CommandReader::Role::none:
      break;
  }
  return "none";
}

CommandReader::CommandReader(std::string share, std::string keys, OpenSource open,
                             CommandHandler take)
    : share_(std::move(share)),
      keys_(std::move(keys)),
      open_(std::move(open)),
      take_(std::move(take)) {}

void CommandReader::become(Role role) {
  role_ = role;
  elections_ = 0;
  look_again_ = std::chrono::steady_clock::now() + kLookAgain;
}

// The name is the election: the kernel gives it to one, and frees it when that process ends.
void CommandReader::elect() {
  if (share_.empty()) return become(Role::alone);
  auto listener = listen_locally(share_);
  if (listener) {
    server_ = std::make_unique<CommandServer>(*std::move(listener));
    return become(Role::leader);
  }
  if (listener.error().code != core::Code::failed_precondition) return become(Role::alone);
  auto connection = connect_locally(share_);
  if (connection) {
    leader_ = std::make_unique<CommandFollower>(*std::move(connection));
    return become(Role::follower);
  }
  if (connection.error().code == core::Code::permission_denied || ++elections_ >= kElections) {
    become(Role::alone);
  }
}

core::Status CommandReader::turn(milliseconds at_most) {
  if (role() == Role::alone && !share_.empty() && std::chrono::steady_clock::now() > look_again_) {
    close();
  }
  if (role() == Role::none) elect();
  switch (role()) {
    case Role::none:
      wait(wakeup_, kElectAgain);
      return core::ok();
    case Role::follower: {
      const auto read = leader_->read(at_most, wakeup_, take_);
      if (read) return core::ok();
      leader_.reset();
      // One that is gone is replaced at once; one that hangs still holds the name.
      become(read.error().code == core::Code::deadline_exceeded ? Role::alone : Role::none);
      return core::ok();
    }
    case Role::leader:
    case Role::alone:
      return read_source(at_most);
  }
  return core::ok();
}

core::Status CommandReader::read_source(milliseconds at_most) {
  if (source_ == nullptr) {
    auto opened = open_();
    if (!opened) {
      if (opened.error().code == core::Code::cancelled) return core::ok();
      wait(wakeup_, kReopenAfter);
      return opened.error();
    }
    source_ = *std::move(opened);
    const core::MutexLock lock(mutex_);
    to_wake_ = source_.get();
  }
  if (wakeup_.take()) return core::ok();  // before there was a source that could be woken
  const auto polled = source_->poll(at_most, 100, [&](const core::RecordView& record) {
    if (record.topic != core::topic::kCommands || !record.key || !record.key->starts_with(keys_))
      return;
    take_(record);
    if (server_ != nullptr) server_->publish(record);
  });
  if (polled) return core::ok();
  wait(wakeup_, kReadAgain);
  return polled.error();
}

void CommandReader::wake() {
  wakeup_.set();
  const core::MutexLock lock(mutex_);
  if (to_wake_ != nullptr) to_wake_->wake();
}

void CommandReader::close() {
  if (source_ != nullptr) source_->close(kCloseSource);
  {
    const core::MutexLock lock(mutex_);
    to_wake_ = nullptr;
  }
  source_.reset();
  leader_.reset();
  server_.reset();
  role_ = Role::none;
}

}  // namespace tocsin::hook
