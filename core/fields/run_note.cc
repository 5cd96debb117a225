#include "core/fields/run_note.h"

#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/identity.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::core {
namespace {

constexpr std::size_t kMostOfARunNoteRecord = std::size_t{32} << 10;
constexpr std::size_t kMostOfItsNames = 1000;  // bytes

}  // namespace

template <typename A>
void fields(A& io, Of<A, RunNote>& note) {
  io.field("id", note.id, "its name in the key", How::required);
  io.field("run", note.run, "uid of the run", How::required);
  io.field("by", note.by, "who writes", How::required);
  io.field("at", note.at, "when", How::required);
  io.field("text", note.text, "what they write", How::required);
  io.field("origin", note.origin, "api");
}

OutRecord run_note_record(const RunNote& note) {
  OutRecord out{topic::kRouterControl, std::string(kRunNotePrefix) + note.id, run_note_json(note)};
  out.partition = 0;
  return out;
}

std::string run_note_id(const RunNote& note) {
  return make_id("note_", {note.run, note.by, std::to_string(nanoseconds(note.at)), note.text});
}

std::string run_note_json(const RunNote& note) { return write_json(note); }

Result<RunNote> read_run_note(std::string_view json) {
  RunNote out;
  if (const Status read = read_json(json, kMostOfARunNoteRecord, out); !read) return read.error();
  const auto uid = parse_run_uid(out.run);
  if (!uid || to_text(*uid) != out.run)
    return invalid_argument("run is \"" + visible(out.run, 60) + "\": expected the uid of a run");
  if (out.id.size() > kMostOfItsNames || out.by.size() > kMostOfItsNames)
    return invalid_argument("id and by have at most " + std::to_string(kMostOfItsNames) +
                            " bytes each");
  if (out.text.size() > kMostOfARunNote)
    return invalid_argument("text has " + std::to_string(out.text.size()) +
                            " bytes: expected at most " + std::to_string(kMostOfARunNote));
  return out;
}

}  // namespace tocsin::core
