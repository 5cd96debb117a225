// A full check of a store's file. It reads all of it, and changes nothing; a writer may go on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace tocsin::insights {

class StoreDatabase;

/// What a check has found.
class StoreFindings {
 public:
  static constexpr std::size_t kMostLines = 20;

  /// Something is wrong; beyond kMostLines it is only counted.
  void add(std::string line);
  /// Known, and not wrong; beyond kMostLines it is not kept.
  void note(std::string line);
  [[nodiscard]] bool sound() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  std::int64_t runs = 0;
  std::int64_t rows = 0;    // events, or rows of series
  std::int64_t pieces = 0;  // chunks, pieces, blocks and histograms that were decoded

 private:
  std::vector<std::string> lines_, notes_;
  std::size_t count_ = 0;
};

/// SQLite's own check of pages and indices.
void check_pages(StoreDatabase& database, StoreFindings& out);

/// Of insights.db: pages, and that every record can be read. not_found: there is no such file.
/// unavailable: it cannot be opened. data_loss: it is no store at all.
core::Result<StoreFindings> check_events(const std::string& path);
/// What a check begins with: a connection that sees one state of the file.
core::Result<std::unique_ptr<StoreDatabase>> open_to_check(const std::string& path,
                                                           std::int64_t application);

}  // namespace tocsin::insights
