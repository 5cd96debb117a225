#include "app/serve/link_seal.h"

#include "app/serve/session_table.h"
#include "core/identity.h"

namespace tocsin::app {
namespace {

core::Result<std::string> signature_by(const config::Secret& secret, std::string_view text) {
  const auto opened = secret.reveal();
  if (!opened) return opened.error();
  if (opened->size() < LinkSeal::kShortestSecret) {
    return core::invalid_argument("it has fewer than " + std::to_string(LinkSeal::kShortestSecret) +
                                  " characters");
  }
  // A name of the purpose in front: a signature of something else by the same secret is none of a link.
  const auto hash = keyed_hash(*opened, "tocsin link\n" + std::string(text));
  return core::base32(hash).substr(0, LinkSeal::kSignature);
}

}  // namespace

void read(config::Reader& in, LinkConfig& out) {
  config::Check<core::Duration> lifetime;
  lifetime.ok = [](core::Duration length) {
    return length >= std::chrono::minutes(5) && length <= std::chrono::hours(120);
  };
  lifetime.expected = "5m … 120h";
  in.secret("secret", out.secret,
            "signs the links; the same in every process; at least 16 characters", true);
  in.secret("previous_secret", out.previous_secret, "accepted too while the secret is rotated");
  in.optional("lifetime", out.lifetime, lifetime,
              "a link opens nothing this long after its message");
}

core::Result<std::string> LinkSeal::sign(std::string_view text) const {
  return signature_by(config_.secret, text);
}

bool LinkSeal::is_ours(std::string_view text, std::string_view signature) const {
  bool out = false;
  for (const config::Secret* secret : {&config_.secret, &config_.previous_secret}) {
    if (!secret->set()) continue;
    const auto wanted = signature_by(*secret, text);
    // Hashes are compared, so that the time it takes tells nothing of the signature.
    out = (wanted && core::sha256(*wanted) == core::sha256(signature)) || out;
  }
  return out;
}

}  // namespace tocsin::app
