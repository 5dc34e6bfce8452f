#include "db/sqlite/library.h"

#include <new>

#include "base/check.h"

namespace interlock::sqlite {
namespace {

constexpr unsigned kPendingByte = 0x40000000;

const sqlite3_pcache_methods2& Own() {
  static const sqlite3_pcache_methods2 kOwn = [] {
    sqlite3_pcache_methods2 own = {};
    IL_CHECK(sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &own) == SQLITE_OK);
    return own;
  }();
  return kOwn;
}

// What SQLite knows as a sqlite3_pcache of ours.
struct Cache {
  sqlite3_pcache* own;
  unsigned exchange;  // the number of the page with the pending byte

  unsigned Key(unsigned number) const { return number == exchange ? 0 : number; }
};

Cache& CacheOf(sqlite3_pcache* cache) { return *reinterpret_cast<Cache*>(cache); }

sqlite3_pcache* Create(int page_bytes, int extra_bytes, int purgeable) {
  sqlite3_pcache* const own = Own().xCreate(page_bytes, extra_bytes, purgeable);
  if (own == nullptr) return nullptr;
  auto* const cache =
      new (std::nothrow) Cache{own, kPendingByte / static_cast<unsigned>(page_bytes) + 1};
  if (cache == nullptr) Own().xDestroy(own);
  return reinterpret_cast<sqlite3_pcache*>(cache);
}

void Destroy(sqlite3_pcache* cache) {
  Own().xDestroy(CacheOf(cache).own);
  delete &CacheOf(cache);
}

void SetSize(sqlite3_pcache* cache, int pages) { Own().xCachesize(CacheOf(cache).own, pages); }

int Count(sqlite3_pcache* cache) { return Own().xPagecount(CacheOf(cache).own); }

sqlite3_pcache_page* Fetch(sqlite3_pcache* cache, unsigned number, int create) {
  return Own().xFetch(CacheOf(cache).own, CacheOf(cache).Key(number), create);
}

void Unpin(sqlite3_pcache* cache, sqlite3_pcache_page* page, int discard) {
  Own().xUnpin(CacheOf(cache).own, page, discard);
}

void Rekey(sqlite3_pcache* cache, sqlite3_pcache_page* page, unsigned before, unsigned now) {
  const Cache& of = CacheOf(cache);
  Own().xRekey(of.own, page, of.Key(before), of.Key(now));
}

void Truncate(sqlite3_pcache* cache, unsigned end) { Own().xTruncate(CacheOf(cache).own, end); }

void Shrink(sqlite3_pcache* cache) { Own().xShrink(CacheOf(cache).own); }

}  // namespace

const sqlite3_pcache_methods2& PageCache() {
  static const sqlite3_pcache_methods2 kMethods = {.iVersion = 1,
                                                   .pArg = Own().pArg,
                                                   .xInit = Own().xInit,
                                                   .xShutdown = Own().xShutdown,
                                                   .xCreate = Create,
                                                   .xCachesize = SetSize,
                                                   .xPagecount = Count,
                                                   .xFetch = Fetch,
                                                   .xUnpin = Unpin,
                                                   .xRekey = Rekey,
                                                   .xTruncate = Truncate,
                                                   .xDestroy = Destroy,
                                                   .xShrink = Shrink};
  return kMethods;
}

bool SetUpLibrary() {
  static const bool kInTime = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK &&
                              sqlite3_config(SQLITE_CONFIG_PCACHE2, &PageCache()) == SQLITE_OK;
  return kInTime;
}

}  // namespace interlock::sqlite
