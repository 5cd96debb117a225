#include "collectors/hook/raw/object_store.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "collectors/hook/raw/aws_credentials.h"
#include "core/identity.h"

namespace tocsin::hook {
namespace {

constexpr const char* kCurl = "libcurl.so.4";
constexpr unsigned kSignsWell = 0x075800;  // 7.88: headers are sorted and signed as S3 wants them
constexpr long kConnectSeconds = 10;
constexpr long kSlowSeconds = 30;  // below so many bytes per second for so long
constexpr long kSlowBytes = 1024;
constexpr std::size_t kMostAnswer = 64 << 10;  // of what is no object
constexpr std::string_view kS3 = "s3://";

/// The functions of libcurl that are used here, in the library of the system.
struct Curl {
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) setopt = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) getinfo = nullptr;
  decltype(&curl_easy_strerror) strerror = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_all = nullptr;
  std::string wrong;  // empty: it is there

  static const Curl& of_system() {
    static const Curl* const loaded = new Curl;  // never unloaded
    return *loaded;
  }

 private:
  Curl() {
    void* const library = dlopen(kCurl, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      wrong = std::string("a store needs ") + kCurl + " (Debian and Ubuntu: libcurl4): not found";
      return;
    }
    decltype(&curl_global_init) global = nullptr;
    decltype(&curl_version_info) version = nullptr;
    const bool all =
        find(library, "curl_global_init", global) && find(library, "curl_version_info", version) &&
        find(library, "curl_easy_init", init) && find(library, "curl_easy_cleanup", cleanup) &&
        find(library, "curl_easy_reset", reset) && find(library, "curl_easy_setopt", setopt) &&
        find(library, "curl_easy_perform", perform) &&
        find(library, "curl_easy_getinfo", getinfo) &&
        find(library, "curl_easy_strerror", strerror) &&
        find(library, "curl_slist_append", append) &&
        find(library, "curl_slist_free_all", free_all);
    if (!all || global(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      wrong = std::string(kCurl) + " cannot be used";
    } else if (const auto* info = version(CURLVERSION_NOW); info->version_num < kSignsWell) {
      wrong = std::string("a store needs libcurl 7.88 or newer; here is ") + info->version;
    }
  }

  template <typename F>
  static bool find(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(dlsym(library, name));
    return out != nullptr;
  }
};

/// One request; what it sets ends with it.
struct Exchange {
  std::vector<std::byte> answer;
  std::size_t most = kMostAnswer;
  const BlobStore::Stop* stop = nullptr;
};

std::size_t on_body(char* data, std::size_t, std::size_t size, void* into) {
  auto& exchange = *static_cast<Exchange*>(into);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const std::size_t room = exchange.most - std::min(exchange.most, exchange.answer.size());
  exchange.answer.insert(exchange.answer.end(), bytes, bytes + std::min(size, room));
  return size;
}

int on_progress(void* with, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& exchange = *static_cast<const Exchange*>(with);
  return exchange.stop != nullptr && (*exchange.stop)() ? 1 : 0;
}

// <Code>NoSuchBucket</Code> of an answer: the store's own word for what is wrong.
std::string code_of(const std::vector<std::byte>& answer) {
  const std::string_view text(reinterpret_cast<const char*>(answer.data()), answer.size());
  const std::size_t from = text.find("<Code>");
  const std::size_t to = text.find("</Code>");
  if (from == text.npos || to == text.npos || to < from || to - from > 80) return {};
  std::string out(text.substr(from + 6, to - from - 6));
  std::erase_if(out, [](char c) { return c < ' ' || c > '~'; });
  return " (" + out + ")";
}

core::Code code_of(long status, bool writing) {
  if (status >= 500 || status == 429 || status == 408) return core::Code::unavailable;
  if (status == 401 || status == 403) return core::Code::permission_denied;
  if (status == 404) return writing ? core::Code::failed_precondition : core::Code::not_found;
  return status == 416 ? core::Code::data_loss : core::Code::failed_precondition;
}

class ObjectStore final : public BlobStore {
 public:
  ObjectStore(const RawConfig& config, config::Environment environment)
      : environment_(std::move(environment)), handle_(Curl::of_system().init()) {
    const std::string place = config.to.substr(kS3.size());
    const std::size_t slash = place.find('/');
    bucket_ = place.substr(0, slash);
    if (slash != std::string::npos) prefix_ = place.substr(slash + 1);
    while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
    region_ = first_of(
        {config.region, variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), "us-east-1"});
    const std::string endpoint =
        first_of({config.endpoint, variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL")});
    // A bucket with a dot in its name would not match the certificate as part of a host's.
    if (!endpoint.empty()) {
      base_ = endpoint + (endpoint.back() == '/' ? "" : "/") + bucket_ + "/";
    } else if (bucket_.find('.') != std::string::npos) {
      base_ = "https://s3." + region_ + ".amazonaws.com/" + bucket_ + "/";
    } else {
      base_ = "https://" + bucket_ + ".s3." + region_ + ".amazonaws.com/";
    }
  }
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  ~ObjectStore() override { Curl::of_system().cleanup(handle_); }

  core::Status put(const std::string& key, std::span<const std::byte> bytes,
                   const Stop& stop) override {
    const std::string name = prefix_.empty() ? key : prefix_ + "/" + key;
    Exchange exchange;
    exchange.stop = &stop;
    const auto body = [&](const Curl& curl) {
      curl.setopt(handle_, CURLOPT_CUSTOMREQUEST, "PUT");
      curl.setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(bytes.size()));
      curl.setopt(handle_, CURLOPT_POSTFIELDS, bytes.data());
    };
    const auto status = perform(name, bytes, true, exchange, body);
    return status ? core::ok() : core::Status(status.error());
  }

  core::Result<std::vector<std::byte>> get(const std::string& uri, std::uint64_t offset,
                                           std::uint64_t bytes) override {
    if (bytes == 0) return std::vector<std::byte>();
    const std::string name = uri.substr(kS3.size() + bucket_.size() + 1);
    const std::string range = std::to_string(offset) + "-" + std::to_string(offset + bytes - 1);
    Exchange exchange;
    exchange.most = bytes + 1;
    const auto body = [&](const Curl& curl) {
      curl.setopt(handle_, CURLOPT_HTTPGET, 1L);
      curl.setopt(handle_, CURLOPT_RANGE, range.c_str());
    };
    const auto status = perform(name, {}, false, exchange, body);
    if (!status) return status.error();
    if (*status != 206 || exchange.answer.size() != bytes) {
      return core::Error{core::Code::data_loss, uri + " does not have the bytes " + range};
    }
    return std::move(exchange.answer);
  }

  [[nodiscard]] std::string uri(const std::string& key) const override {
    return std::string(kS3) + bucket_ + "/" + (prefix_.empty() ? key : prefix_ + "/" + key);
  }

 private:
  [[nodiscard]] std::string variable(const char* name) const {
    return environment_(name).value_or("");
  }
  static std::string first_of(std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) return text;
    }
    return {};
  }

  /// The status of a request that succeeded.
  template <typename Body>
  core::Result<long> perform(const std::string& name, std::span<const std::byte> payload,
                             bool writing, Exchange& exchange, Body&& body) {
    const Curl& curl = Curl::of_system();
    const auto credentials = aws_credentials(environment_);
    if (!credentials) return credentials.error();
    const std::string url = base_ + name;
    const std::string signer = "aws:amz:" + region_ + ":s3";
    const auto digest =
        core::sha256({reinterpret_cast<const char*>(payload.data()), payload.size()});
    curl_slist* headers =
        curl.append(nullptr, ("x-amz-content-sha256: " + core::hex(digest)).c_str());
    if (writing) headers = curl.append(headers, "Content-Type: application/octet-stream");
    if (!credentials->token.empty()) {
      headers = curl.append(headers, ("x-amz-security-token: " + credentials->token).c_str());
    }
    const std::string bundle = variable("AWS_CA_BUNDLE");
    curl.reset(handle_);  // keeps the connection
    body(curl);
    curl.setopt(handle_, CURLOPT_URL, url.c_str());
    curl.setopt(handle_, CURLOPT_AWS_SIGV4, signer.c_str());
    curl.setopt(handle_, CURLOPT_USERNAME, credentials->key.c_str());
    curl.setopt(handle_, CURLOPT_PASSWORD, credentials->secret.c_str());
    curl.setopt(handle_, CURLOPT_HTTPHEADER, headers);
    if (!bundle.empty()) curl.setopt(handle_, CURLOPT_CAINFO, bundle.c_str());
    curl.setopt(handle_, CURLOPT_NOSIGNAL, 1L);
    curl.setopt(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.setopt(handle_, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl.setopt(handle_, CURLOPT_LOW_SPEED_LIMIT, kSlowBytes);
    curl.setopt(handle_, CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    curl.setopt(handle_, CURLOPT_WRITEFUNCTION, &on_body);
    curl.setopt(handle_, CURLOPT_WRITEDATA, &exchange);
    curl.setopt(handle_, CURLOPT_NOPROGRESS, 0L);
    curl.setopt(handle_, CURLOPT_XFERINFOFUNCTION, &on_progress);
    curl.setopt(handle_, CURLOPT_XFERINFODATA, &exchange);
    const CURLcode result = curl.perform(handle_);
    long status = 0;
    curl.getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    curl.reset(handle_);
    curl.free_all(headers);
    if (result == CURLE_ABORTED_BY_CALLBACK) {
      return core::Error{core::Code::cancelled, url + ": the time is over"};
    }
    if (result != CURLE_OK) {
      const bool refused = result == CURLE_PEER_FAILED_VERIFICATION ||
                           result == CURLE_SSL_CACERT_BADFILE || result == CURLE_URL_MALFORMAT;
      return core::Error{refused ? core::Code::failed_precondition : core::Code::unavailable,
                         url + ": " + curl.strerror(result)};
    }
    if (status >= 300 || status < 200) {
      return core::Error{code_of(status, writing), url + ": HTTP status " + std::to_string(status) +
                                                       code_of(exchange.answer)};
    }
    return status;
  }

  const config::Environment environment_;
  CURL* const handle_;
  std::string bucket_;
  std::string prefix_;
  std::string region_;
  std::string base_;  // with the bucket, ends in '/'
};

}  // namespace

core::Result<std::unique_ptr<BlobStore>> open_object_store(const RawConfig& config,
                                                           const config::Environment& environment) {
  if (const std::string& wrong = Curl::of_system().wrong; !wrong.empty()) {
    return core::Error{core::Code::failed_precondition, wrong};
  }
  return std::unique_ptr<BlobStore>(std::make_unique<ObjectStore>(config, environment));
}

}  // namespace tocsin::hook
