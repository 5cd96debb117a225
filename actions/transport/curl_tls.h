// TLS of a request by libcurl: files, versions, the name that a certificate must have.
// Internal to actions.
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "actions/transport/http_client.h"

namespace tocsin::actions {

/// What the files of a HttpTls are at this moment: another file, or other bytes, give another stamp.
class TlsFilesStamp {
 public:
  TlsFilesStamp() = default;
  explicit TlsFilesStamp(const HttpTls& tls);
  friend bool operator==(const TlsFilesStamp&, const TlsFilesStamp&) = default;

 private:
  struct FileStamp {
    std::uint64_t inode = 0;  // all 0: there is no such file
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    std::int64_t size = 0;
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
  };
  static FileStamp stamp_of(const std::string& path);
  std::array<FileStamp, 3> files_;  // authorities, certificate, key
};

/// Where a request goes if its certificate must have another name than the host of its URL: the URL
/// has that name then, and the connection is made to the host.
struct ServerName {
  std::string url;
  std::string host_header;  // "Host: …"; empty: the URL's own
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> connect_to{nullptr,
                                                                         curl_slist_free_all};
};
ServerName server_name_of(const HttpRequest& request);

/// Peer and host are always verified.
void set_tls(CURL* handle, const HttpTls& tls);

}  // namespace tocsin::actions
