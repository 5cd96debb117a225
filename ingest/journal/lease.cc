#include "ingest/journal/lease.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "ingest/journal/fork.h"

namespace tocsin::ingest {
namespace {

std::int64_t random_holder() {
  std::random_device random;
  const auto number = std::uint64_t{random()} << 32 | random();
  return static_cast<std::int64_t>(number >> 2 | 1);
}

struct flock byte_of(std::int64_t holder) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = holder;
  lock.l_len = 1;
  return lock;
}

}  // namespace

JournalLease::JournalLease(std::string directory, std::string name,
                           std::function<core::Status()> prepare)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      prepare_(std::move(prepare)),
      me_(random_holder()) {}

core::Status JournalLease::open() {
  if (control_ != nullptr && !control_->replaced()) return core::ok();
  if (auto status = prepare_(); !status) return status;
  const std::string path = directory_ + "/lease.lock";
  lock_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_.open()) return file_error("opening", path, errno);
  auto mine = byte_of(me_);
  if (::fcntl(lock_.get(), F_OFD_SETLK, &mine) != 0) return file_error("locking", path, errno);
  auto opened = JournalDatabase::open(journal_path(directory_, JournalFile::control),
                                      JournalAccess::write_durable);
  if (!opened) return opened.error();
  control_ = std::move(*opened);
  return core::ok();
}

bool JournalLease::lives(std::int64_t holder) const {
  auto theirs = byte_of(holder);
  return ::fcntl(lock_.get(), F_OFD_GETLK, &theirs) != 0 || theirs.l_type != F_UNLCK;
}

core::Status JournalLease::step(core::Duration steady, std::chrono::milliseconds timeout) {
  const JournalUse use;
  if (auto status = open(); !status) return status;
  control_->wait_for_locks(timeout);
  if (auto status = control_->run("BEGIN IMMEDIATE"); !status) return status;
  auto taken = take(steady);
  if (taken) {
    if (auto status = control_->run("COMMIT"); !status) taken = status.error();
  }
  if (!taken) {
    (void)control_->run("ROLLBACK");
    return taken.error();
  }
  valid_until_.reset();
  if (*taken) valid_until_ = steady + kSession * 2 / 3;
  return core::ok();
}

core::Result<bool> JournalLease::take(core::Duration steady) {
  auto query = control_->prepare("SELECT holder, expires FROM lease WHERE name = ?");
  if (!query) return query.error();
  const int found = query->bind(1, name_).step();
  if (found == SQLITE_ROW) {
    const std::int64_t holder = query->integer(0);
    const core::Duration expires{query->integer(1)};
    if (holder != me_ && steady < expires && lives(holder)) return false;
  } else if (found != SQLITE_DONE) {
    return control_->error();
  }
  query->reset();
  auto write = control_->prepare("INSERT OR REPLACE INTO lease VALUES(?, ?, ?)");
  if (!write) return write.error();
  write->bind(1, name_).bind(2, me_).bind(3, core::Duration(steady + kSession).count());
  if (write->step() != SQLITE_DONE) return control_->error();
  return true;
}

void JournalLease::release() {
  const JournalUse use;
  if (std::exchange(valid_until_, std::nullopt) && control_ != nullptr) {
    // Only politeness: without the lock below the row counts for nothing.
    auto remove = control_->prepare("DELETE FROM lease WHERE name = ? AND holder = ?");
    if (remove) remove->bind(1, name_).bind(2, me_).step();
  }
  control_.reset();
  lock_.reset();
}

}  // namespace tocsin::ingest
