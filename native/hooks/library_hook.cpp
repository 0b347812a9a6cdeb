// A library calls what it imports through a table of addresses, which the dynamic linker fills by the relocations that
// the library's dynamic section lists (System V gABI, "Dynamic Linking"). Other addresses in that table are other
// functions.
#include "hooks/library_hook.hpp"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace shim {
namespace {

#if defined(__x86_64__)
bool is_of_a_function(std::uint32_t type) { return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT; }
#elif defined(__aarch64__)
bool is_of_a_function(std::uint32_t type) { return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT; }
#else
bool is_of_a_function(std::uint32_t) { return false; }
#endif

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }

// Where one library keeps what is asked about it.
struct Imports {
  explicit Imports(const dl_phdr_info& info) : base(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr) & segment = info.dlpi_phdr[i];
      if (segment.p_type == PT_DYNAMIC) read(reinterpret_cast<const ElfW(Dyn)*>(base + segment.p_vaddr));
      if (segment.p_type == PT_GNU_RELRO) {
        sealed_from = base + segment.p_vaddr;
        sealed_to = (sealed_from + segment.p_memsz) / page_bytes() * page_bytes();  // what follows stays writable
      }
    }
  }

  std::vector<void**> slots_of(const char* name) const {
    std::vector<void**> found;
    for (const auto& [table, bytes] : {calls, others})
      for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
        const ElfW(Rela) & entry = table[i];
        const char* const symbol = names + symbols[ELF64_R_SYM(entry.r_info)].st_name;
        if (is_of_a_function(static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info))) && std::strcmp(symbol, name) == 0)
          found.push_back(reinterpret_cast<void**>(base + entry.r_offset));
      }
    return found;
  }

  ElfW(Addr) base;
  ElfW(Addr) sealed_from = 0;  // what the linker has made read-only
  ElfW(Addr) sealed_to = 0;

 private:
  struct Relocations {
    const ElfW(Rela) * table = nullptr;
    std::size_t bytes = 0;
  };

  void read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      // Some linkers leave what the file says, others add where the library lies.
      const ElfW(Addr) value = entry->d_un.d_ptr;
      const ElfW(Addr) address = value < base ? base + value : value;
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_JMPREL) calls.table = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELA) others.table = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) calls.bytes = value;
      if (entry->d_tag == DT_RELASZ) others.bytes = value;
    }
  }

  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Relocations calls;
  Relocations others;
};

struct Slot {
  void** address;
  void* function;
  bool is_sealed;
};

bool set(const Slot& slot) {
  const auto address = reinterpret_cast<std::uintptr_t>(slot.address);
  void* const start = reinterpret_cast<void*>(address / page_bytes() * page_bytes());
  if (slot.is_sealed && ::mprotect(start, page_bytes(), PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot.address, slot.function, __ATOMIC_SEQ_CST);  // other threads may be calling through it
  if (slot.is_sealed) ::mprotect(start, page_bytes(), PROT_READ);
  return true;
}

struct Search {
  const std::string& library;
  const std::vector<Replacement>& replacements;
  std::vector<std::vector<Slot>> slots;  // by replacement
  bool is_complete;
};

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  if (search.library != (slash == nullptr ? info->dlpi_name : slash + 1)) return 0;
  const Imports imports(*info);
  for (std::size_t i = 0; i < search.replacements.size(); ++i) {
    const std::vector<void**> found = imports.slots_of(search.replacements[i].name);
    search.is_complete = search.is_complete && !found.empty();
    for (void** address : found) {
      const auto place = reinterpret_cast<ElfW(Addr)>(address);
      const bool is_sealed = place >= imports.sealed_from && place < imports.sealed_to;
      search.slots[i].push_back({address, search.replacements[i].function, is_sealed});
    }
  }
  return 0;
}

}  // namespace

bool replace_imports(const std::string& library, const std::vector<Replacement>& replacements) {
  Search search{library, replacements, std::vector<std::vector<Slot>>(replacements.size()), true};
  ::dl_iterate_phdr(look_at, &search);
  if (!search.is_complete) return false;
  for (const std::vector<Slot>& slots : search.slots) {
    if (slots.empty()) return false;
    for (const Slot& slot : slots)
      if (!set(slot)) return false;
  }
  return true;
}

}  // namespace shim
