// pair_store: C[m, n] = acc[m, n], rounded to T, two columns at a time from registers.
#include <pipelink/fragment.cuh>

#include "pair_store.contract.cuh"

PL_ENTRY(store)(const PL_COMPONENT::StoreRelocations&, PL_COMPONENT::StorePorts& port,
                const PL_COMPONENT::StoreWork& work, uint32_t thread) {
  using namespace PL_COMPONENT;
  using namespace pipelink;
  for_each_pair(port.acc, {work.m, work.n, port.M, port.N}, thread,
                [&](const Place& place, Pair pair) { store_pair(port.C + place.offset, pair); });
}
