// The list of runs as a person looks through it: in trouble first, filtered, from any place on.
#include <utility>

#include "insights/store/database.h"
#include "insights/store/event_reader.h"

namespace tocsin::insights {
namespace {

// A word stands somewhere in what is known of the run, or in its issues.
constexpr std::string_view kHasWord =
    " AND ((run.uid || ' ' || coalesce(job, '') || ' ' || labels || ' ' ||"
    " replace(coalesce(outcome, ''), '_', ' ') || ' ' || iif(phase = 'ended', 'ended', 'running'))"
    " LIKE ?N ESCAPE '\\' OR EXISTS (SELECT 1 FROM issue w WHERE w.run = run.uid AND NOT shadow AND"
    " (w.summary LIKE ?N ESCAPE '\\' OR w.rule LIKE ?N ESCAPE '\\')))";

constexpr std::string_view kGrade =
    "CASE WHEN phase = 'ended' THEN 2 WHEN EXISTS (SELECT 1 FROM issue i WHERE i.run = run.uid AND"
    " firing AND NOT shadow AND i.attempt = run.attempt) THEN 0 ELSE 1 END";

std::string like_pattern(std::string_view word) {
  std::string out = "%";
  for (const char c : word) {
    if (c == '%' || c == '_' || c == '\\') out += '\\';
    out += c;
  }
  return out + "%";
}

std::string conditions(std::size_t words) {
  std::string out = " WHERE 1";
  for (std::size_t at = 0; at < words; ++at) {
    std::string one(kHasWord);
    const std::string number = std::to_string(at + 1);
    for (std::size_t n = one.find("?N"); n != std::string::npos; n = one.find("?N"))
      one.replace(n, 2, "?" + number);
    out += one;
  }
  return out;
}

}  // namespace

RunListAnswer EventReader::run_list(const RunListAsk& ask) {
  RunListAnswer out;
  const std::string listed = "SELECT uid, heard, " + std::string(kGrade) + " AS grade FROM run" +
                             conditions(ask.words.size());
  const auto bound = [&](StoreStatement& statement) {
    for (std::size_t at = 0; at < ask.words.size(); ++at)
      statement.bind(static_cast<int>(at) + 1, std::string_view(like_pattern(ask.words[at])));
  };
  StoreStatement count =
      database_->prepare("SELECT grade, count(*) FROM (" + listed + ") GROUP BY grade");
  bound(count);
  while (count.next())
    out.of_grade.at(static_cast<std::size_t>(count.integer(0))) = count.integer(1);
  const int last = static_cast<int>(ask.words.size());
  StoreStatement get =
      database_->prepare(listed + " ORDER BY grade, heard DESC, uid DESC LIMIT ?" +
                         std::to_string(last + 1) + " OFFSET ?" + std::to_string(last + 2));
  bound(get);
  get.bind(last + 1, static_cast<std::int64_t>(ask.most)).bind(last + 2, ask.from);
  std::vector<std::string> uids;
  while (get.next()) uids.push_back(get.text(0));
  out.runs = runs_of(uids);
  return out;
}

}  // namespace tocsin::insights
