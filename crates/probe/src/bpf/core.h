/* What path.bpf.c needs of the kernel and of the BPF machine, and no more: so that neither vmlinux.h nor libbpf's headers
   have to be there. Of each kernel type the fields that are read; the loader finds them by name in the types of the kernel
   that runs (CO-RE), wherever they lie there. Numbers of helpers and maps are of include/uapi/linux/bpf.h, for ever. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define RELOCATED __attribute__((preserve_access_index))

/* Maps, as the loader reads them from the types (BTF). */
#define MAP(name, kind, entries, of, to)                                                                               \
    struct {                                                                                                           \
        int (*type)[kind];                                                                                             \
        int (*max_entries)[entries];                                                                                   \
        of *key;                                                                                                       \
        to *value;                                                                                                     \
    } name SEC(".maps")
#define HASH 1
#define ARRAY 2
#define RINGBUF 27

/* Helpers. */
static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*forget)(void *map, const void *key) = (void *)3;
static u64 (*monotonic)(void) = (void *)5;
static u64 (*pid_tgid)(void) = (void *)14;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *record, u64 flags) = (void *)132;
static struct task_struct *(*current_task)(void) = (void *)158;
#define ANY 0
#define NEW_ONLY 1
#define NO_WAKEUP 1

/* Kernel types. */
struct sock_common {
    u32 skc_daddr;
    u32 skc_rcv_saddr;
    u16 skc_dport;
    u16 skc_num;
} RELOCATED;
struct sock {
    struct sock_common __sk_common;
    u8 sk_shutdown;
} RELOCATED;
struct tcp_sock {
    u32 rcv_nxt;
    u32 copied_seq;
} RELOCATED;
struct socket {
    struct sock *sk;
} RELOCATED;
struct file {
    void *private_data;
} RELOCATED;
struct fdtable {
    struct file **fd;
} RELOCATED;
struct files_struct {
    struct fdtable *fdt;
} RELOCATED;
struct task_struct {
    s32 pid;
    s32 tgid;
    struct files_struct *files;
} RELOCATED;
struct pt_regs___x86 {
    unsigned long orig_ax;
} RELOCATED;
struct pt_regs___arm64 {
    s32 syscallno;
} RELOCATED;

/* Whether the running kernel's type has that field: known before the program is verified. */
#define HAS_FIELD(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)
/* Reads a field of a pointer that the verifier knows nothing of. */
#define READ(to, from, field) read_kernel(to, sizeof(*(to)), __builtin_preserve_access_index(&(from)->field))
