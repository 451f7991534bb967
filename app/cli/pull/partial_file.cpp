// SPDX-License-Identifier: MIT
#include "cli/pull/partial_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/file_lock.h"

namespace snapkv::cli {

struct PartialFile::Digest {
  using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
  Context context = {EVP_MD_CTX_new(), EVP_MD_CTX_free};

  Digest() { restart(); }
  void restart() {
    if (context == nullptr) throw std::bad_alloc();
    check(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));
  }
  void add(std::string_view bytes) {
    check(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()));
  }
  std::string text() const {
    const Context copy = {EVP_MD_CTX_new(), EVP_MD_CTX_free};
    if (copy == nullptr) throw std::bad_alloc();
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes = {};
    unsigned size = 0;
    check(EVP_MD_CTX_copy_ex(copy.get(), context.get()));
    check(EVP_DigestFinal_ex(copy.get(), bytes.data(), &size));
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
    return out;
  }
  static void check(int result) {
    if (result != 1) fail(ErrorCode::kRuntime, "OpenSSL: SHA-256 failed");
  }
};

PartialFile::PartialFile(const std::filesystem::path& path)
    : path_(path), digest_(std::make_unique<Digest>()) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) fail_with_errno("can't be opened");
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t n = read(fd_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd_);
      errno = error;
      fail_with_errno("can't be read");
    }
    if (n == 0) break;
    digest_->add({buffer.data(), static_cast<size_t>(n)});
    size_ += static_cast<uint64_t>(n);
  }
}

PartialFile::~PartialFile() {
  if (fd_ >= 0) close(fd_);
}

std::string PartialFile::sha256() const { return digest_->text(); }

void PartialFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_with_errno("can't be written");
    const auto written = static_cast<size_t>(n);
    digest_->add(bytes.substr(0, written));
    size_ += written;
    bytes.remove_prefix(written);
  }
}

void PartialFile::clear() {
  if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0) fail_with_errno("can't be emptied");
  size_ = 0;
  digest_->restart();
}

void PartialFile::finish(const std::filesystem::path& name) {
  if (fsync(fd_) != 0) fail_with_errno("can't be written");
  if (rename(path_.c_str(), name.c_str()) != 0) fail_with_errno("can't be renamed");
}

void PartialFile::remove() { unlink(path_.c_str()); }

void PartialFile::fail_with_errno(const char* what) const {
  fail(ErrorCode::kRuntime, "{} {}: {}", path_.string(), what, strerror(errno));
}

FetchLock::FetchLock(const std::filesystem::path& path, const std::string& what) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(ErrorCode::kRuntime, "{} can't be opened: {}", path.string(), strerror(errno));
  const std::string holder = lock_file(fd_);
  if (holder.empty()) return;
  close(fd_);
  fail(ErrorCode::kRuntime, "{}: {} is fetching it", what, holder);
}

FetchLock::~FetchLock() { close(fd_); }

}  // namespace snapkv::cli
