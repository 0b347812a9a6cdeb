// Combines the elements of several areas of memory, one by one. DTYPE and OP are NCCL's numbers; OP 5 multiplies with the
// factor. Nothing is included, so that the compiler needs no headers of CUDA's.

enum { SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE, SCALED };

union Bits {
  unsigned number;
  float value;
};

static __device__ float value_of(unsigned number) {
  Bits bits;
  bits.number = number;
  return bits.value;
}

static __device__ unsigned bits_of(float value) {
  Bits bits;
  bits.value = value;
  return bits.number;
}

#if DTYPE == 6  // float16

typedef unsigned short Element;
typedef float Wide;

static __device__ Wide widened(Element bits) {
  const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 0) return value_of(sign | bits_of(fraction * 5.9604644775390625e-8f));
  return value_of(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13);
}

// Rounds to the nearest, ties to even.
static __device__ Element narrowed(Wide value) {
  const unsigned bits = bits_of(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  unsigned half;
  if (size > 0x7f800000u)
    half = 0x7e00u;
  else if (size >= 0x477ff000u)  // 65520 and more
    half = 0x7c00u;
  else if (size < 0x38800000u)  // whose last bit counts 2^-24, as that of numbers from 0.5 on does
    half = bits_of(value_of(size) + 0.5f) - 0x3f000000u;
  else
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
  return static_cast<Element>(sign | half);
}

#elif DTYPE == 9  // bfloat16

typedef unsigned short Element;
typedef float Wide;

static __device__ Wide widened(Element bits) { return value_of(static_cast<unsigned>(bits) << 16); }

static __device__ Element narrowed(Wide value) {
  const unsigned bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Element>(bits >> 16 | 64);
  return static_cast<Element>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

#else

#if DTYPE == 0
typedef signed char Element;
#elif DTYPE == 1
typedef unsigned char Element;
#elif DTYPE == 2
typedef int Element;
#elif DTYPE == 3
typedef unsigned Element;
#elif DTYPE == 4
typedef long long Element;
#elif DTYPE == 5
typedef unsigned long long Element;
#elif DTYPE == 7
typedef float Element;
#elif DTYPE == 8
typedef double Element;
#endif
typedef Element Wide;

static __device__ Wide widened(Element element) { return element; }
static __device__ Element narrowed(Wide value) { return value; }

#endif

// A NaN is what comes of a NaN.
static __device__ Wide combined(Wide one, Wide other) {
  if (OP == PRODUCT) return static_cast<Wide>(one * other);
  if (OP == MAXIMUM) return one > other || one != one ? one : other;
  if (OP == MINIMUM) return one < other || one != one ? one : other;
  return static_cast<Wide>(one + other);
}

struct Areas {
  const Element* of[MOST_RANKS];
};

extern "C" __global__ void combine(Element* result, Areas areas, unsigned long long count, int ranks, double factor) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    Wide value = widened(areas.of[0][i]);
    for (int rank = 1; rank < ranks; ++rank) value = combined(value, widened(areas.of[rank][i]));
    if (OP == AVERAGE) value = static_cast<Wide>(value / static_cast<Wide>(ranks));
    if (OP == SCALED) value = static_cast<Wide>(value * static_cast<Wide>(factor));
    result[i] = narrowed(value);
  }
}
