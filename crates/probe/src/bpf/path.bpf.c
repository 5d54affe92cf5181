/* Measures in the kernel where requests wait: at a server's listener, on its connections, in its threads.

   Six tracepoints, all typed (tp_btf), so no function is patched and no tracefs is needed. Times are CLOCK_MONOTONIC.

     inet_sock_set_state  SYN_RECV -> ESTABLISHED at the listener's port: the connection enters the accept queue
     sys_exit             of accept and accept4: a process takes it from there
     sk_data_ready        at the server's socket: bytes arrive; at the client's, on this host: a response begins
     sock_recv_length     the server reads
     sched_wakeup, sched_switch   its threads become ready, and run

   A response is stamped when its first bytes reach the client's socket, not when the server's send returns
   (sock_send_length): over loopback a send delivers before it returns, so a server that is preempted in between would seem
   to respond after the client has read the response and sent its next request.

   Waits are counted by process into buckets (`cells`): exact up to 127 ns, then 64 to each power of two. If every response is
   wanted, each gets a record (`events`), without a wake-up of the reader. Nothing is stopped, changed or delayed. */

#include "core.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading. */
const volatile u16 port = 0;          /* of the listener */
const volatile u32 wants_events = 0;  /* whether each response gets a record */
const volatile u32 nr_accept = 0, nr_accept4 = 0; /* the numbers of these system calls here */

/* Kinds of waits. */
enum { ACCEPT_QUEUE, RECEIVE_QUEUE, IN_SERVER, RUN_QUEUE, ANSWERS };
#define SUM 0xffff

/* What was not traced (`losses`). */
enum { LOST_EVENTS, LOST_CONNECTIONS, LOST_CELLS, UNACCEPTED };

struct connection {
    u64 established, accepted;
    u64 arrived; /* first byte after the server last read */
    u64 request; /* when the request in service arrived; 0 if not seen */
    u64 read;    /* when its first byte was read; 0: none is in service */
    u64 peer;
    u32 pid, number, waiting, pad;
};
struct event {
    u64 established, accepted, arrived, read, answered, port, pid, number;
};
struct cell {
    u32 pid, kind_and_bucket;
};

MAP(connections, HASH, 65536, u64, struct connection); /* by the server's socket */
MAP(peers, HASH, 65536, u64, u64);                     /* by the client's address and port: the server's socket */
MAP(family, HASH, 4096, u32, u32);                     /* the server's processes */
MAP(ready_since, HASH, 16384, u32, u64);               /* by thread; 0: it runs or sleeps */
MAP(cells, HASH, 65536, struct cell, u64);
MAP(window, ARRAY, 2, u32, u64); /* counts from, until */
MAP(losses, ARRAY, 4, u32, u64);
struct {
    int (*type)[RINGBUF];
    int (*max_entries)[4 << 20];
} events SEC(".maps");

INLINE void lose(u32 what)
{
    u64 *count = lookup(&losses, &what);
    if (count) __sync_fetch_and_add(count, 1);
}

INLINE int is_counted(u64 at)
{
    u32 first = 0, second = 1;
    u64 *from = lookup(&window, &first), *until = lookup(&window, &second);
    return from && until && at >= *from && at < *until;
}

INLINE void add(u32 pid, u32 kind, u32 bucket, u64 amount)
{
    struct cell key = {.pid = pid, .kind_and_bucket = kind << 16 | bucket};
    u64 zero = 0, *cell = lookup(&cells, &key);
    if (!cell) {
        update(&cells, &key, &zero, NEW_ONLY);
        cell = lookup(&cells, &key);
    }
    if (cell)
        __sync_fetch_and_add(cell, amount);
    else
        lose(LOST_CELLS);
}

INLINE u32 bucket_of(u64 time)
{
    u32 shift = 0;
    u64 rest = time;
    if (rest >> 39) { shift += 32; rest >>= 32; }
    if (rest >> 23) { shift += 16; rest >>= 16; }
    if (rest >> 15) { shift += 8; rest >>= 8; }
    if (rest >> 11) { shift += 4; rest >>= 4; }
    if (rest >> 9) { shift += 2; rest >>= 2; }
    if (rest >> 8) { shift += 1; rest >>= 1; }
    if (rest >> 7) { shift += 1; rest >>= 1; }
    return shift * 64 + (u32)rest;
}

INLINE void waited(u32 pid, u32 kind, u64 time)
{
    add(pid, kind, bucket_of(time), 1);
    add(pid, kind, SUM, time);
}

INLINE void join_family(u32 tgid)
{
    u32 one = 1;
    if (!lookup(&family, &tgid)) update(&family, &tgid, &one, ANY);
}

/* All IPv6 sockets have the same placeholder IPv4 address, so only the port tells their clients apart. */
INLINE u64 peer_of(u32 address, u16 number)
{
    return (u64)address << 32 | number;
}

#define TCP_ESTABLISHED 1
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7

SEC("tp_btf/inet_sock_set_state")
int lt_state(u64 *arguments)
{
    struct sock *sock = (void *)arguments[0];
    s32 before = arguments[1], after = arguments[2];
    u64 key = (u64)sock;
    if (sock->__sk_common.skc_num != port) return 0;
    if (before == TCP_SYN_RECV && after == TCP_ESTABLISHED) {
        u16 client = __builtin_bswap16(sock->__sk_common.skc_dport);
        struct connection new = {.established = monotonic(), .peer = peer_of(sock->__sk_common.skc_daddr, client)};
        if (update(&connections, &key, &new, ANY) || update(&peers, &new.peer, &key, ANY)) lose(LOST_CONNECTIONS);
    } else if (after == TCP_CLOSE) {
        struct connection *old = lookup(&connections, &key);
        if (!old) return 0;
        u64 peer = old->peer, *owner = lookup(&peers, &peer);
        if (owner && *owner == key) forget(&peers, &peer);
        forget(&connections, &key);
    }
    return 0;
}

SEC("tp_btf/sys_exit")
int lt_accept(u64 *arguments)
{
    long result = (long)arguments[1];
    u64 number;
    if (result < 0) return 0;
    if (HAS_FIELD(struct pt_regs___x86, orig_ax))
        number = ((struct pt_regs___x86 *)arguments[0])->orig_ax;
    else
        number = ((struct pt_regs___arm64 *)arguments[0])->syscallno;
    if (number != nr_accept4 && number != nr_accept) return 0;
    /* descriptor -> file -> socket -> sock */
    struct file **files = current_task()->files->fdt->fd, *file = 0;
    struct socket *socket = 0;
    u64 key = 0;
    read_kernel(&file, sizeof(file), files + result);
    READ((void **)&socket, file, private_data);
    READ((struct sock **)&key, socket, sk);
    struct connection *connection = lookup(&connections, &key);
    if (!connection || connection->accepted) return 0;
    u32 tgid = pid_tgid() >> 32;
    connection->accepted = monotonic();
    connection->pid = tgid;
    join_family(tgid);
    if (is_counted(connection->established)) waited(tgid, ACCEPT_QUEUE, connection->accepted - connection->established);
    return 0;
}

#define RCV_SHUTDOWN 1

/* Whether the client has unread bytes; the end of the stream counts in the sequence numbers, but is not a byte. */
INLINE int has_bytes(struct sock *sock)
{
    struct tcp_sock *tcp = (void *)sock;
    u32 received = 0, copied = 0;
    u8 shutdown = 0;
    READ(&received, tcp, rcv_nxt);
    READ(&copied, tcp, copied_seq);
    READ(&shutdown, sock, sk_shutdown);
    return received - copied > (shutdown & RCV_SHUTDOWN ? 1 : 0);
}

INLINE void answer(struct sock *client)
{
    u64 peer = peer_of(client->__sk_common.skc_rcv_saddr, client->__sk_common.skc_num);
    u64 *key = lookup(&peers, &peer);
    if (!key) return;
    u64 sock = *key;
    struct connection *connection = lookup(&connections, &sock);
    if (!connection || !connection->read || !has_bytes(client)) return;
    u64 now = monotonic(), read = connection->read, request = connection->request, accepted = connection->accepted;
    u32 pid = connection->pid;
    add(pid, ANSWERS, 0, 1);
    if (!accepted || !request) lose(UNACCEPTED);
    else if (is_counted(request)) {
        waited(pid, RECEIVE_QUEUE, read - (request > accepted ? request : accepted));
        waited(pid, IN_SERVER, now - read);
    }
    if (wants_events) {
        struct event *event = reserve(&events, sizeof(*event), 0);
        if (event) {
            event->established = connection->established;
            event->accepted = accepted;
            event->arrived = request;
            event->read = read;
            event->answered = now;
            event->port = client->__sk_common.skc_num;
            event->pid = pid;
            event->number = connection->number;
            submit(event, NO_WAKEUP);
        } else
            lose(LOST_EVENTS);
    }
    connection->number++;
    connection->read = 0;
}

SEC("tp_btf/sk_data_ready")
int lt_data(u64 *arguments)
{
    struct sock *sock = (void *)arguments[0];
    u64 key = (u64)sock;
    if (sock->__sk_common.skc_num == port) {
        struct connection *connection = lookup(&connections, &key);
        if (connection && !connection->waiting) {
            connection->arrived = monotonic();
            connection->waiting = 1;
        }
    } else if (__builtin_bswap16(sock->__sk_common.skc_dport) == port)
        answer(sock);
    return 0;
}

#define MSG_PEEK 2

SEC("tp_btf/sock_recv_length")
int lt_receive(u64 *arguments)
{
    struct sock *sock = (void *)arguments[0];
    s32 length = arguments[1], flags = arguments[2];
    u64 key = (u64)sock;
    if (length <= 0 || flags & MSG_PEEK || sock->__sk_common.skc_num != port) return 0;
    struct connection *connection = lookup(&connections, &key);
    if (!connection) return 0;
    if (!connection->read) {
        connection->request = connection->waiting ? connection->arrived : 0;
        connection->read = monotonic();
        connection->pid = pid_tgid() >> 32;
        join_family(connection->pid);
    }
    connection->waiting = 0;
    return 0;
}

SEC("tp_btf/sched_wakeup")
int lt_wakeup(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    u32 tgid = task->tgid, thread = task->pid;
    if (!lookup(&family, &tgid)) return 0;
    u64 now = monotonic();
    update(&ready_since, &thread, &now, ANY);
    return 0;
}

SEC("tp_btf/sched_switch")
int lt_switch(u64 *arguments)
{
    int preempted = (u8)arguments[0];
    struct task_struct *before = (void *)arguments[1], *after = (void *)arguments[2];
    u32 state = arguments[3], tgid = before->tgid, thread = before->pid;
    u64 now = 0;
    /* It was preempted and did not go to sleep, so it is still ready. */
    if (thread && (preempted || !state) && lookup(&family, &tgid)) {
        now = monotonic();
        update(&ready_since, &thread, &now, ANY);
    }
    tgid = after->tgid;
    thread = after->pid;
    if (!thread || !lookup(&family, &tgid)) return 0;
    u64 *since = lookup(&ready_since, &thread);
    if (!since || !*since) return 0;
    if (!now) now = monotonic();
    if (is_counted(now)) waited(tgid, RUN_QUEUE, now - *since);
    *since = 0;
    return 0;
}
