#include "routing/tables/old_members.h"

namespace tocsin::routing {

namespace {

constexpr std::size_t kOldHashLength = 64;

}  // namespace

core::Status OldMembers::restore(std::string_view rest) {
  if (rest.size() < kOldHashLength + 2 || rest[kOldHashLength] != '/') {
    return core::Error{core::Code::data_loss, "key without group and member"};
  }
  read_.emplace_back(rest.substr(0, kOldHashLength), rest.substr(kOldHashLength + 1));
  return core::ok();
}

void OldMembers::link(Issues& issues) {
  for (const auto& [hash, key] : std::exchange(read_, {})) {
    IssueState* issue = issues.state_of(key);
    gone_.insert("member/" + hash + "/" + key);
    if (issue == nullptr) continue;
    issue->joined.push_back(hash);
    issues.touch(*issue);
  }
}

void OldMembers::take(std::vector<StateRecord>& out) {
  for (const std::string& key : std::exchange(gone_, {})) out.push_back({key, {}});
}

}  // namespace tocsin::routing
