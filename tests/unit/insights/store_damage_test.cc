// What a store does with a file that is damaged, and on a disk that is full.
#include <csignal>
#include <fstream>
#include <random>

#include <sqlite3.h>
#include <sys/resource.h>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

namespace fs = std::filesystem;

class StoreDamageTest : public SeriesFolder {
 protected:
  std::unique_ptr<SeriesWriter> writer_of(SetAside& moved, const std::string& condemned = "") {
    auto made = SeriesWriter::open(path(), "here", moved, condemned);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  // Steps [from, to) of one curve; the position says how many were committed.
  static core::Status write(SeriesWriter& store, std::int64_t from, std::int64_t to) {
    name(store);
    for (std::int64_t x = from; x < to; ++x) add(store, x, static_cast<double>(x % 97));
    return store.commit({{{"telemetry", 0}, to}});
  }
  std::int64_t stored() {
    auto ask = reader();
    std::int64_t rows = 0;
    for (const FamilyLine& one : ask->families(core::to_text(run()), FamilyKind::scalar, 5)) {
      std::int64_t last = -1;
      ask->rows(one, 0, 1 << 30, [&](const SeriesRows& some) {
        for (const std::int64_t x : some.x) {
          EXPECT_EQ(x, last + 1);
          last = x;
          ++rows;
        }
      });
    }
    EXPECT_TRUE(ask->failure());
    return rows;
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& all) const {
    for (const char* part : {"-wal", "-shm"}) fs::remove(path() + part);
    std::ofstream(path(), std::ios::binary) << all;
  }
};

TEST_F(StoreDamageTest, WhateverIsDamagedTheStoreIsWrittenAgain) {
  SetAside none;
  ASSERT_TRUE(write(*writer_of(none), 0, 20'000));
  ASSERT_EQ(none.why, "");
  const std::string good = bytes();
  ASSERT_GT(good.size(), 100'000);
  std::mt19937_64 chance(11);
  int aside = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bad = good;
    const std::size_t at = chance() % bad.size();
    if (round % 3 == 0) {
      bad.resize(at);
    } else {
      const std::size_t many = std::min<std::size_t>(bad.size() - at, 1U << (chance() % 16));
      for (std::size_t k = 0; k < many; ++k) bad[at + k] = static_cast<char>(chance());
    }
    put(bad);
    std::string condemned;
    bool written = false;
    for (int turn = 0; turn < 3 && !written; ++turn) {
      SetAside moved;
      auto made = SeriesWriter::open(path(), "here", moved, condemned);
      aside += moved.moved_to.empty() ? 0 : 1;
      if (!made && made.error().message == "it is another program's file") break;
      ASSERT_TRUE(made) << made.error().message;
      const auto positions = (*made)->positions();
      const std::int64_t next = positions.empty() ? 0 : positions[0].next;
      const auto status = write(**made, next, next + 2'000);
      written = status.has_value();
      if (!status) {
        EXPECT_EQ(status.error().code, core::Code::data_loss) << status.error().message;
        condemned = status.error().message;
      }
    }
    if (written) {
      auto ask = reader();  // gives an answer or an error
      (void)ask_series(*ask, asked());
      (void)ask->failure();
    }
  }
  EXPECT_GT(aside, 20);
}

TEST_F(StoreDamageTest, AFolderAndAnEmptyFileAreSetAside) {
  fs::create_directories(path() + "/inside");
  SetAside moved;
  ASSERT_TRUE(write(*writer_of(moved), 0, 10));
  EXPECT_TRUE(fs::exists(path() + ".damaged/inside"));
  EXPECT_EQ(moved.why, "a folder is in its place");
  put("");
  ASSERT_TRUE(write(*writer_of(moved), 0, 10));
  EXPECT_EQ(moved.why, "the file is empty");
  EXPECT_EQ(moved.moved_to, path() + ".damaged.2");
  EXPECT_EQ(stored(), 10);
}

TEST_F(StoreDamageTest, AnEarlierFileIsReplacedOnlyWithAWord) {
  SetAside moved;
  for (int round = 1; round <= 4; ++round) {
    put("of round " + std::to_string(round) + std::string(5000, 'x'));
    moved = SetAside();
    writer_of(moved);
    EXPECT_EQ(moved.replaced, round == 4 ? path() + ".damaged.3" : "");
  }
  const auto begins = [&](const std::string& ending) {
    std::string line(10, ' ');
    std::ifstream(path() + ending).read(line.data(), 10);
    return line;
  };
  EXPECT_EQ(begins(".damaged"), "of round 1");
  EXPECT_EQ(begins(".damaged.2"), "of round 2");
  EXPECT_EQ(begins(".damaged.3"), "of round 4");
}

TEST_F(StoreDamageTest, AReaderOfTheOldFileLeavesTheNewOneAlone) {
  SetAside moved;
  ASSERT_TRUE(write(*writer_of(moved), 0, 3'000));
  auto old = reader();
  auto store = writer_of(moved, "bytes that are none");
  ASSERT_TRUE(moved.damaged);
  ASSERT_TRUE(write(*store, 0, 500));
  EXPECT_EQ(ask_series(*old, asked(100'000))->lines.at(0).points.size(), 3'000);
  old.reset();
  EXPECT_TRUE(fs::exists(path() + "-wal"));
  ASSERT_TRUE(write(*store, 500, 900));
  EXPECT_EQ(stored(), 900);
}

TEST_F(StoreDamageTest, AReaderTellsOfDamageAndOfNothingElse) {
  SetAside moved;
  ASSERT_TRUE(write(*writer_of(moved), 0, 20'000));
  std::string told;
  const auto look = [&] {
    auto ask = reader();
    ask->tell_damage([&](const std::string& why) { told = why; });
    (void)ask_series(*ask, asked(100'000));
    return ask->failure().has_value();
  };
  EXPECT_TRUE(look());
  EXPECT_EQ(told, "");
  std::string bad = bytes();
  for (std::size_t at = 2 * 16384; at < bad.size(); ++at) bad[at] = '\x55';
  put(bad);
  EXPECT_FALSE(look());
  EXPECT_NE(told, "");
}

// One chunk of 39 goes by its name, and the file stays. Its buckets stay too.
TEST_F(StoreDamageTest, AChunkThatCannotBeReadGoesAloneAndItsGapIsTold) {
  SetAside moved;
  auto store = writer_of(moved);
  ASSERT_TRUE(write(*store, 0, 20'000));
  const Buckets whole =
      reader()->buckets(reader()->families(core::to_text(run()), FamilyKind::scalar, 5)[0],
                        kValueColumn, 0, 20'000, 10);
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, "UPDATE chunk SET data = substr(data, 1, 20) WHERE x0 = 5120",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(raw);
  }
  EXPECT_FALSE(check_series(path())->sound());
  std::vector<BadChunk> met;
  auto ask = reader();
  std::string damage;
  ask->tell_damage([&](const std::string& why) { damage = why; });
  ask->tell_bad_chunks([&](const BadChunk& one) { met.push_back(one); });
  (void)ask_series(*ask, asked(100'000));
  const auto status = ask->failure();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::unavailable);
  EXPECT_EQ(damage, "");
  ASSERT_FALSE(met.empty());
  EXPECT_EQ(met[0].x0, 5120);
  ask.reset();
  EXPECT_TRUE(*store->drop_bad(met[0].family, met[0].x0));
  EXPECT_FALSE(*store->drop_bad(met[0].family, met[0].x0));   // it is gone
  EXPECT_FALSE(*store->drop_bad(met[0].family, 5120 + 512));  // it is whole
  ask = reader();
  const auto answer = ask_series(*ask, asked(100'000));
  EXPECT_EQ(answer->lines.at(0).points.size(), 20'000 - 512);
  EXPECT_TRUE(ask->failure());
  const auto lost = ask->losses(core::to_text(run()));
  ASSERT_EQ(lost.size(), 1);
  EXPECT_EQ(lost[0].reason, kUnreadable);
  EXPECT_EQ(lost[0].values, 512);
  EXPECT_EQ(lost[0].first_step, 5120);
  EXPECT_EQ(lost[0].last_step, 5120 + 511);
  const FamilyLine line = ask->families(core::to_text(run()), FamilyKind::scalar, 5)[0];
  const Buckets after = ask->buckets(line, kValueColumn, 0, 20'000, 10);
  ASSERT_EQ(after.size(), whole.size());
  for (const auto& [at, bucket] : whole) {
    EXPECT_EQ(after.at(at).n, bucket.n);
    EXPECT_EQ(after.at(at).sum, bucket.sum);
  }
  const auto found = check_series(path());
  EXPECT_TRUE(found->sound()) << (found->lines().empty() ? "" : found->lines()[0]);
  ASSERT_EQ(found->notes().size(), 1);
  EXPECT_NE(found->notes()[0].find("from 5120 to 5631"), std::string::npos);
  ASSERT_TRUE(write(*store, 20'000, 21'000));  // and it goes on
}

// A limit of files stands for the disk: the system answers a write in the same way.
TEST_F(StoreDamageTest, OnAFullDiskReadingGoesOnAndNothingIsLostOrDoubled) {
  SetAside moved;
  auto store = writer_of(moved);
  ASSERT_TRUE(write(*store, 0, 5'000));
  StoreHold hold;
  hold.take(path());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{fs::file_size(path() + "-wal") + 200'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::int64_t next = 5'000;
  core::Status status = core::ok();
  while (status && next < 200'000) {
    status = write(*store, next, next + 5'000);
    if (status) next += 5'000;
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::resource_exhausted) << status.error().message;
  EXPECT_EQ(stored(), next);
  store.reset();
  auto again = SeriesWriter::open(path(), "here", moved);
  if (again) {
    EXPECT_FALSE(write(**again, next, next + 100'000));
    again->reset();
  } else {
    EXPECT_EQ(again.error().code, core::Code::resource_exhausted) << again.error().message;
  }
  EXPECT_EQ(stored(), next);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  store = writer_of(moved);
  ASSERT_EQ(store->positions().at(0).next, next);
  ASSERT_TRUE(write(*store, next, next + 30'000));
  EXPECT_EQ(stored(), next + 30'000);
  EXPECT_EQ(moved.why, "");
}

}  // namespace
}  // namespace tocsin::insights
