// Another SQLite in the process opens, reads and closes the journal's files, as Python's module does beside the library of the wheel.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/contract/journal_fixture.h"

namespace tocsin::tests {
namespace {

/// A copy of the library with memory of its own: it knows nothing of our connections.
class OtherSqlite {
 public:
  OtherSqlite() : library_(::dlmopen(LM_ID_NEWLM, "libsqlite3.so.0", RTLD_NOW)) {}
  [[nodiscard]] bool loaded() const { return library_ != nullptr; }

  /// Opens the file, asks for one number, and closes it; -1: one of these failed.
  std::int64_t ask(const std::string& path, const char* sql) const {
    sqlite3* handle = nullptr;
    sqlite3_stmt* statement = nullptr;
    std::int64_t answer = -1;
    if (of(sqlite3_open_v2, "sqlite3_open_v2")(path.c_str(), &handle, SQLITE_OPEN_READWRITE,
                                               nullptr) == SQLITE_OK &&
        of(sqlite3_prepare_v2, "sqlite3_prepare_v2")(handle, sql, -1, &statement, nullptr) ==
            SQLITE_OK &&
        of(sqlite3_step, "sqlite3_step")(statement) == SQLITE_ROW) {
      answer = of(sqlite3_column_int64, "sqlite3_column_int64")(statement, 0);
    }
    of(sqlite3_finalize, "sqlite3_finalize")(statement);
    of(sqlite3_close, "sqlite3_close")(handle);
    return answer;
  }

 private:
  template <typename F>
  F* of(F*, const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }
  void* library_;
};

TEST_F(Journal, AnotherSqliteOfTheProcessNeitherTakesTheLogAwayNorEmptiesItsIndex) {
  const OtherSqlite other;
  ASSERT_TRUE(other.loaded()) << ::dlerror();
  const std::string path = file("telemetry.db");
  put("telemetry", "run-1", "first");
  const auto index = std::filesystem::file_size(path + "-shm");
  EXPECT_EQ(other.ask(path, "SELECT count(*) FROM telemetry"), 1);
  ASSERT_TRUE(std::filesystem::exists(path + "-wal"));
  EXPECT_EQ(std::filesystem::file_size(path + "-shm"), index);
  put("telemetry", "run-1", "second");  // into the log that others see
  EXPECT_EQ(other.ask(path, "SELECT count(*) FROM telemetry"), 2);
  EXPECT_EQ(texts(*reader({"telemetry"})), (std::vector<std::string>{"first", "second"}));
}

TEST_F(Journal, AFileThatIsClosedIsHeldNoMore) {
  const OtherSqlite other;
  ASSERT_TRUE(other.loaded()) << ::dlerror();
  const std::string path = file("telemetry.db");
  put("telemetry", "run-1", "first");
  close();
  EXPECT_EQ(other.ask(path, "SELECT count(*) FROM telemetry"), 1);
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));  // the last one out cleans up
}

}  // namespace
}  // namespace tocsin::tests
