// Who leads on a journal: one at a time, handed over by release, by death and by silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contract/child.h"
#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

using core::Lease;
using std::chrono::milliseconds;
using std::chrono::seconds;

class JournalLease : public Journal {
 protected:
  std::unique_ptr<Lease> lease(const std::string& name = "router-lease") {
    auto opened = transport_->lease(name);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  static bool leads(Lease& lease, core::Duration steady) {
    const auto status = lease.step(steady, milliseconds{1000});
    EXPECT_TRUE(status) << status.error().message;
    return lease.valid_until().has_value();
  }
};

TEST_F(JournalLease, TheFirstHoldsItAndRenewsItTheSecondWaits) {
  auto first = lease();
  auto second = lease();
  auto other = lease("another");
  EXPECT_EQ(first->valid_until(), std::nullopt);
  core::Duration now = steady_now();
  for (int i = 0; i < 20; ++i, now += seconds{2}) {
    EXPECT_TRUE(leads(*first, now));
    EXPECT_EQ(first->valid_until(), now + Lease::kSession * 2 / 3);
    EXPECT_FALSE(leads(*second, now));
    EXPECT_TRUE(leads(*other, now));
  }
}

TEST_F(JournalLease, AReleasedLeaseIsTakenAtOnce) {
  auto first = lease();
  auto second = lease();
  const core::Duration now = steady_now();
  ASSERT_TRUE(leads(*first, now));
  first->release();
  first->release();
  EXPECT_EQ(first->valid_until(), std::nullopt);
  EXPECT_TRUE(leads(*second, now));
  EXPECT_FALSE(leads(*first, now));
}

TEST_F(JournalLease, ASilentHolderLosesItAfterTheWholeSessionAndNotBefore) {
  auto first = lease();
  auto second = lease();
  const core::Duration now = steady_now();
  ASSERT_TRUE(leads(*first, now));
  const auto trusted = *first->valid_until();
  EXPECT_FALSE(leads(*second, now + Lease::kSession - milliseconds{1}));
  EXPECT_TRUE(leads(*second, now + Lease::kSession));
  EXPECT_LT(trusted, now + Lease::kSession);  // it stopped by itself long before
  EXPECT_FALSE(leads(*first, now + Lease::kSession));
}

TEST_F(JournalLease, AKilledHolderIsSucceededAtOnce) {
  Child holder({TOCSIN_JOURNAL_WORKER, "lease", directory_});
  ASSERT_TRUE(holder.line());
  auto next = lease();
  ASSERT_FALSE(leads(*next, steady_now()));
  holder.kill();
  EXPECT_TRUE(leads(*next, steady_now()));  // its row still has ten seconds to go
}

TEST_F(JournalLease, ABusyFileIsNoLossOfTheLease) {
  auto first = lease();
  const core::Duration now = steady_now();
  ASSERT_TRUE(leads(*first, now));
  const auto until = first->valid_until();
  Child holder({TOCSIN_JOURNAL_WORKER, "hold", file("control.db")});
  ASSERT_TRUE(holder.line());
  const auto status = first->step(now + seconds{1}, milliseconds{50});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::unavailable);
  EXPECT_EQ(first->valid_until(), until);
}

}  // namespace
}  // namespace tocsin::tests
