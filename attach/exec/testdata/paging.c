// paging registers memory on demand and changes it between accesses of the device.
//
//   paging check SEED STEPS   any changes, one after another: each byte is the one that was put there
//   paging calls              each kind of call takes the pages from the device, which the counters show
//   paging reads              what the device has read before is the process's own or not, as this kernel has it
//   paging race SEED MS       threads change the memory while the device accesses it; nothing is checked
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { \
	printf("line %d: %s (%s), step %d\n", __LINE__, #x, strerror(errno), step); fflush(stdout); _exit(1); } } while (0)

enum { PAGE = 4096, PAGES = 48, SIZE = PAGES * PAGE, ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
enum kind { ANON, PRIVATE, SHARED }; // what a page of the region is

static int step;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static struct ibv_cq *cq;
static uint8_t *region, *want;
static uint8_t plain[SIZE] __attribute__((aligned(PAGE)));
static struct ibv_mr *pinned, *explicit_mr, *implicit_mr, *readable; // the last one for reading only

static __thread uint64_t state;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

static void noise(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = draw(256);
}

struct pair { struct ibv_qp *a, *b; };

static void to_rts(struct ibv_qp *q, uint32_t peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL };

	CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } } };
	CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 };
	CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct pair join(void)
{
	struct ibv_qp_init_attr i = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 16, 16, 2, 2, 0 } };
	struct pair p = { ibv_create_qp(pd, &i), ibv_create_qp(pd, &i) };

	CHECK(p.a && p.b);
	to_rts(p.a, p.b->qp_num);
	to_rts(p.b, p.a->qp_num);
	return p;
}

static void part(struct pair p)
{
	CHECK(!ibv_destroy_qp(p.a) && !ibv_destroy_qp(p.b));
}

static int post(struct ibv_qp *q, enum ibv_wr_opcode op, void *at, uint32_t n, uint32_t lkey, void *far, uint32_t rkey)
{
	struct ibv_sge s = { (uintptr_t)at, n, lkey };
	struct ibv_send_wr w = { .wr_id = 1, .sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)far, rkey } }, *bad;

	return ibv_post_send(q, &w, &bad);
}

static int receive(struct ibv_qp *q, void *at, uint32_t n, uint32_t lkey)
{
	struct ibv_sge s = { (uintptr_t)at, n, lkey };
	struct ibv_recv_wr w = { .wr_id = 2, .sg_list = &s, .num_sge = 1 }, *bad;

	return ibv_post_recv(q, &w, &bad);
}

static enum ibv_wc_status next(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	CHECK(n == 1);
	return wc.status;
}

static void open_device(void)
{
	struct ibv_device **l = ibv_get_device_list(NULL);

	CHECK(l && l[0]);
	CHECK(ctx = ibv_open_device(l[0]));
	CHECK(pd = ibv_alloc_pd(ctx));
	CHECK(cq = ibv_create_cq(ctx, 4096, NULL, NULL, 0));
	CHECK(!ibv_query_gid(ctx, 1, 0, &gid));
	CHECK(pinned = ibv_reg_mr(pd, plain, SIZE, ALL));
	// Where the kernel puts nothing by itself, so that holes stay holes.
	region = mmap((void *)(1ul << 44), SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(region == (void *)(1ul << 44));
	CHECK(readable = ibv_reg_mr(pd, region, SIZE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));
	CHECK(explicit_mr = ibv_reg_mr(pd, region, SIZE, ALL | IBV_ACCESS_ON_DEMAND));
	CHECK(implicit_mr = ibv_reg_mr(pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND));
}

// ---- check ----

static enum kind kinds[PAGES];
static uint8_t *pattern, *file; // what the files hold
static int pattern_fd, file_fd;

static int new_file(uint8_t **copy)
{
	int fd = memfd_create("paging", 0);

	CHECK(*copy = malloc(SIZE));
	noise(*copy, SIZE);
	CHECK(fd >= 0 && pwrite(fd, *copy, SIZE, 0) == SIZE);
	return fd;
}

// The region's bytes [at, at+n) are new: so are those of the shared file that its pages show.
static void changed(uint32_t at, uint32_t n)
{
	for (uint32_t i = at; i < at + n; i++)
		if (kinds[i / PAGE] == SHARED)
			file[i] = want[i];
}

static void is(uint32_t i, uint32_t n, enum kind k, const uint8_t *bytes)
{
	for (uint32_t p = i; p < i + n; p++)
		kinds[p] = k;
	if (bytes)
		memcpy(want + i * PAGE, bytes, n * PAGE);
	else
		memset(want + i * PAGE, 0, n * PAGE);
}

static void anonymous(uint32_t i, uint32_t n, int flags)
{
	CHECK(mmap(region + i * PAGE, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0) == region + i * PAGE);
	is(i, n, ANON, NULL);
}

static void change(void)
{
	uint32_t i = draw(PAGES), n = 1 + draw(PAGES - i < 5 ? PAGES - i : 5);
	uint8_t *at = region + i * PAGE, *other;
	size_t size = n * PAGE;
	uint8_t bytes[5 * PAGE];
	pid_t child;

	switch (draw(12)) {
	case 0:
		anonymous(i, n, MAP_FIXED);
		break;
	case 1:
		CHECK(!munmap(at, size));
		anonymous(i, n, MAP_FIXED_NOREPLACE);
		break;
	case 2:
		CHECK(mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, pattern_fd, i * PAGE) == at);
		is(i, n, PRIVATE, pattern + i * PAGE);
		break;
	case 3:
		CHECK(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_fd, i * PAGE) == at);
		is(i, n, SHARED, file + i * PAGE);
		break;
	case 4: // moved here
		other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(other != MAP_FAILED);
		noise(bytes, size);
		memcpy(other, bytes, size);
		CHECK(mremap(other, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
		is(i, n, ANON, bytes);
		break;
	case 5: // moved away
		other = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(other != MAP_FAILED);
		for (uint32_t p = i; p < i + n; p++)
			CHECK(mremap(region + p * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other + (p - i) * PAGE) != MAP_FAILED);
		CHECK(!memcmp(other, want + i * PAGE, size));
		CHECK(!munmap(other, size));
		anonymous(i, n, MAP_FIXED_NOREPLACE);
		break;
	case 6:
		CHECK(!madvise(at, size, MADV_DONTNEED));
		for (uint32_t p = i; p < i + n; p++)
			if (kinds[p] != SHARED)
				is(p, 1, kinds[p], kinds[p] == PRIVATE ? pattern + p * PAGE : NULL);
		break;
	case 7:
		(void)madvise(at, size, MADV_PAGEOUT);
		break;
	case 8: { // read-only for a time
		struct pair p = join();

		CHECK(!mprotect(at, size, PROT_READ));
		CHECK(!post(p.a, IBV_WR_RDMA_READ, plain, size, pinned->lkey, at, readable->rkey) && next() == IBV_WC_SUCCESS);
		CHECK(!memcmp(plain, want + i * PAGE, size));
		CHECK(!post(p.a, IBV_WR_RDMA_WRITE, plain, size, pinned->lkey, at, explicit_mr->rkey) && next() != IBV_WC_SUCCESS);
		CHECK(!mprotect(at, size, PROT_READ | PROT_WRITE));
		part(p);
		break;
	}
	case 9:
		CHECK((child = fork()) >= 0);
		if (!child) {
			for (uint32_t p = 0; p < PAGES; p++)
				if (kinds[p] != SHARED)
					memset(region + p * PAGE, 0xcc, PAGE);
			_exit(0);
		}
		if (draw(2))
			CHECK(waitpid(child, NULL, 0) == child);
		break;
	case 10: {
		struct ibv_sge s = { (uintptr_t)at, size, draw(2) ? explicit_mr->lkey : implicit_mr->lkey };

		CHECK(!ibv_advise_mr(pd, draw(3), draw(2) ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &s, 1));
		break;
	}
	default:
		noise(want + i * PAGE, size);
		memcpy(at, want + i * PAGE, size);
		changed(i * PAGE, size);
	}
}

// One operation of the device on the region.
static void access_region(struct pair p)
{
	uint32_t at = draw(SIZE), n = 1 + draw(SIZE - at < 5 * PAGE ? SIZE - at : 5 * PAGE);
	struct ibv_mr *m = draw(2) ? explicit_mr : implicit_mr;
	int kind = draw(5), fills = kind >= 2;

	noise(plain, n);
	if (fills)
		memcpy(want + at, plain, n);
	switch (kind) {
	case 0:
		CHECK(!post(p.a, IBV_WR_RDMA_READ, plain, n, pinned->lkey, region + at, m->rkey) && next() == IBV_WC_SUCCESS);
		break;
	case 1:
		CHECK(!receive(p.b, plain, n, pinned->lkey) && !post(p.a, IBV_WR_SEND, region + at, n, m->lkey, NULL, 0));
		CHECK(next() == IBV_WC_SUCCESS && next() == IBV_WC_SUCCESS);
		break;
	case 2:
		CHECK(!post(p.a, IBV_WR_RDMA_WRITE, plain, n, pinned->lkey, region + at, m->rkey) && next() == IBV_WC_SUCCESS);
		break;
	case 3:
		CHECK(!receive(p.b, region + at, n, m->lkey) && !post(p.a, IBV_WR_SEND, plain, n, pinned->lkey, NULL, 0));
		CHECK(next() == IBV_WC_SUCCESS && next() == IBV_WC_SUCCESS);
		break;
	default:
		CHECK(!post(p.a, IBV_WR_RDMA_READ, region + at, n, m->lkey, plain, pinned->rkey) && next() == IBV_WC_SUCCESS);
	}
	if (fills)
		changed(at, n);
	else
		CHECK(!memcmp(plain, want + at, n));
}

static void check(int steps)
{
	struct pair p = join();

	CHECK(want = calloc(1, SIZE));
	pattern_fd = new_file(&pattern);
	file_fd = new_file(&file);
	for (step = 0; step < steps; step++) {
		change();
		for (uint32_t i = draw(3); i > 0; i--)
			access_region(p);
		CHECK(!memcmp(region, want, SIZE));
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	part(p);
}

// ---- calls ----

static long counter(const char *name)
{
	char path[256], text[32] = "";
	int fd, n;

	snprintf(path, sizeof path, "/sys/class/infiniband_verbs/uverbs0/%s", name);
	CHECK((fd = open(path, O_RDONLY)) >= 0);
	CHECK((n = read(fd, text, sizeof text - 1)) > 1 && text[n - 1] == '\n');
	close(fd);
	return atol(text);
}

static void becomes(const char *what, const char *name, long least)
{
	for (int i = 0; i < 60000 && counter(name) < least; i++)
		usleep(1000);
	if (counter(name) < least) {
		printf("%s: %s is %ld, want %ld\n", what, name, counter(name), least);
		_exit(1);
	}
}

// has lets the device write to n pages, which it then has.
static void has(struct pair p, uint8_t *at, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(!post(p.a, IBV_WR_RDMA_WRITE, plain, 1, pinned->lkey, at + i * PAGE, implicit_mr->rkey) && next() == IBV_WC_SUCCESS);
}

// takes makes a call by which the device loses n pages at least, and puts what the call left there in order again.
#define TAKES(n, at, call, again) do { \
	has(p, at, n); \
	long before = counter("num_invalidation_pages"), times = counter("num_invalidations"); \
	CHECK(call); \
	becomes(#call, "num_invalidation_pages", before + (n)); \
	becomes(#call, "num_invalidations", times + 1); \
	CHECK(again); \
	step++; \
} while (0)

static pid_t child_of(long how)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	pid_t c = how == SYS_fork ? syscall(SYS_fork) : how == SYS_clone ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : syscall(SYS_clone3, &a, sizeof a);

	if (!c)
		_exit(0);
	return c > 0 && waitpid(c, NULL, 0) == c;
}

static void *map_fixed(void *at)
{
	return mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void calls(void)
{
	struct pair p = join();
	uint8_t *at = map_fixed(mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), *heap;
	int id = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
	long faults;

	CHECK(at != MAP_FAILED);
	memset(plain, 'x', 1);
	TAKES(2, at, !munmap(at, 2 * PAGE), map_fixed(at) == at);
	TAKES(2, at, map_fixed(at) == at, at[0] == 0);
	TAKES(2, at, !mprotect(at, 2 * PAGE, PROT_READ), !mprotect(at, 2 * PAGE, PROT_READ | PROT_WRITE));
	TAKES(2, at, !syscall(SYS_pkey_mprotect, at, 2 * PAGE, PROT_NONE, -1), !mprotect(at, 2 * PAGE, PROT_READ | PROT_WRITE));
	TAKES(2, at, !madvise(at, 2 * PAGE, MADV_DONTNEED), at[PAGE] == 0);
	TAKES(2, at, !madvise(at, 2 * PAGE, MADV_FREE), 1);
	TAKES(2, at, mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * PAGE) == at + 2 * PAGE, map_fixed(at) == at);
	TAKES(2, at + 2 * PAGE, mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * PAGE) == at + 2 * PAGE, map_fixed(at) == at);
	TAKES(1, at, mremap(at, 2 * PAGE, PAGE, 0) == at, map_fixed(at) == at);
	TAKES(2, at, child_of(SYS_fork), 1);
	TAKES(2, at, child_of(SYS_clone), 1);
	TAKES(2, at, child_of(SYS_clone3), 1);
	CHECK((heap = sbrk(0)) != (void *)-1);
	heap += -(uintptr_t)heap % PAGE;
	CHECK(!brk(heap + 2 * PAGE));
	TAKES(2, heap, !brk(heap), 1);
	CHECK(id >= 0 && (heap = shmat(id, NULL, 0)) != (void *)-1);
	TAKES(2, heap, !shmdt(heap), (heap = shmat(id, NULL, 0)) != (void *)-1);
	TAKES(2, heap, shmat(id, heap, SHM_REMAP) == heap, heap[0] == 'x');
	CHECK(!shmctl(id, IPC_RMID, NULL));
	// What the device does not have it does not lose, and what it has it does not ask for.
	CHECK(!munmap(at, 2 * PAGE) && map_fixed(at) == at);
	faults = counter("num_page_faults");
	has(p, at, 1);
	becomes("first access", "num_page_faults", faults + 1);
	faults = counter("num_page_faults");
	has(p, at, 1);
	usleep(20000);
	CHECK(counter("num_page_faults") == faults);
	// A hole fails the QP, and nothing else.
	CHECK(!munmap(at, 2 * PAGE));
	CHECK(!post(p.a, IBV_WR_RDMA_WRITE, plain, 1, pinned->lkey, at, implicit_mr->rkey) && next() != IBV_WC_SUCCESS);
	part(p);
	p = join();
	has(p, region, PAGES);
	part(p);
}

// ---- reads ----

// own says whether a page is present and mapped by this process alone, of anonymous memory: bits 63, 56 and 61 of its entry of pagemap.
static int own(const uint8_t *at)
{
	uint64_t e;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	CHECK(fd >= 0 && pread(fd, &e, sizeof e, (uintptr_t)at / PAGE * sizeof e) == sizeof e);
	close(fd);
	return e >> 63 && (e >> 56 & 1) && !(e >> 61 & 1);
}

// of_zeroes has the device read a page, which is all zeroes.
static void of_zeroes(struct pair p, uint8_t *at, uint32_t rkey)
{
	memset(plain, 0xff, PAGE);
	CHECK(!post(p.a, IBV_WR_RDMA_READ, plain, PAGE, pinned->lkey, at, rkey) && next() == IBV_WC_SUCCESS);
	for (int i = 0; i < PAGE; i++)
		CHECK(!plain[i]);
}

/* reads has the device read pages that nobody has touched: a kernel maps for them one page of zeroes that all share, or to each one of its own.
 * A region that is registered later has pages for writing only where they are the process's own, and writes change one page each. */
static void reads(void)
{
	enum { N = 12 };
	struct pair p = join();
	uint8_t *at = mmap(NULL, N * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *reader, *writer;
	long faults, shared = 0;

	CHECK(at != MAP_FAILED && !madvise(at, N * PAGE, MADV_NOHUGEPAGE));
	CHECK(reader = ibv_reg_mr(pd, at, N * PAGE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));
	for (step = 0; step < N; step++)
		of_zeroes(p, at + step * PAGE, reader->rkey);
	for (step = 0; step < N; step += 2)
		at[step * PAGE] = step + 1; // from now on the process's own, on any kernel
	for (step = 0; step < N; step++) {
		CHECK(step % 2 || own(at + step * PAGE));
		shared += !own(at + step * PAGE);
	}
	CHECK(shared == 0 || shared == N / 2);
	CHECK(writer = ibv_reg_mr(pd, at, N * PAGE, ALL | IBV_ACCESS_ON_DEMAND));
	faults = counter("num_page_faults");
	for (step = 0; step < N; step++) {
		plain[0] = 100 + step;
		CHECK(!post(p.a, IBV_WR_RDMA_WRITE, plain, 1, pinned->lkey, at + step * PAGE + 7, writer->rkey) && next() == IBV_WC_SUCCESS);
		CHECK(own(at + step * PAGE));
		for (int i = step + 1; i < N; i++)
			CHECK(!at[i * PAGE + 7]);
	}
	becomes("writes", "num_page_faults", faults + shared);
	usleep(20000);
	CHECK(counter("num_page_faults") == faults + shared);
	// What the device has for reading is what the process has now, and what it gives away is zero again.
	for (step = 0; step < N; step++) {
		CHECK(!post(p.a, IBV_WR_RDMA_READ, plain, PAGE, pinned->lkey, at + step * PAGE, reader->rkey) && next() == IBV_WC_SUCCESS);
		CHECK(plain[0] == (step % 2 ? 0 : step + 1) && plain[7] == 100 + step && !memcmp(plain, at + step * PAGE, PAGE));
	}
	CHECK(!madvise(at, N * PAGE, MADV_DONTNEED));
	for (step = 0; step < N; step++)
		of_zeroes(p, at + step * PAGE, step % 2 ? reader->rkey : writer->rkey);
	CHECK(!ibv_dereg_mr(reader) && !ibv_dereg_mr(writer));
	part(p);
}

// ---- race ----

static volatile int over;
static uint64_t seed;

// Any call on any part of the region, with arguments that make no sense among them.
static void *disturb(void *arg)
{
	state = seed + (uintptr_t)arg;
	while (!over) {
		uint32_t i = draw(PAGES);
		uint8_t *at = region + i * PAGE;
		size_t size = draw(8) ? (1 + draw(8)) * PAGE : state << draw(64);

		if ((uintptr_t)at + size > (uintptr_t)region + SIZE || (uintptr_t)at + size < (uintptr_t)at)
			at += (uintptr_t)1 << 47; // where nothing is
		switch (draw(13)) {
		case 0: munmap(at, size); break;
		case 1: mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
		case 2: mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
		case 3: mprotect(at, size, draw(8)); break;
		case 4: madvise(at, size, draw(30)); break;
		case 5: (void)!mremap(at, size, (1 + draw(4)) * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, region + draw(PAGES - 4) * PAGE); break;
		case 6: (void)!mremap(at, size, size, draw(4), (void *)state); break;
		case 7: syscall(SYS_clone3, (void *)state, 64); break;
		case 8: shmdt(at); break;
		case 9: syscall(SYS_remap_file_pages, at, size, 0, draw(4), 0); break;
		case 10: syscall(SYS_mmap, ~0ull << 12, ~0ull << 13, 3, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
		case 11:
			if (!draw(20)) {
				pid_t c = fork();

				if (!c)
					_exit(0);
				if (c > 0)
					waitpid(c, NULL, 0);
			}
			break;
		default: {
			struct ibv_sge s = { (uintptr_t)at, size, draw(2) ? explicit_mr->lkey : implicit_mr->lkey };

			ibv_advise_mr(pd, draw(4), draw(2), &s, 1);
		}
		}
	}
	return NULL;
}

static void race(long ms)
{
	pthread_t t[3];
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, disturb, (void *)(i + 1)));
	do {
		struct pair p = join();

		for (int i = 0; i < 8; i++) {
			uint32_t at = draw(SIZE - 2 * PAGE), n = 1 + draw(2 * PAGE);
			struct ibv_mr *m = draw(2) ? explicit_mr : implicit_mr;

			if (draw(2))
				post(p.a, draw(2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, plain, n, pinned->lkey, region + at, m->rkey);
			else
				post(p.a, draw(2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, region + at, n, m->lkey, plain, pinned->rkey);
		}
		if (draw(4))
			for (int i = 0; i < 8; i++)
				next();
		if (!draw(8)) {
			struct ibv_mr *m = explicit_mr;

			explicit_mr = ibv_reg_mr(pd, region, SIZE, ALL | IBV_ACCESS_ON_DEMAND);
			CHECK(explicit_mr && !ibv_dereg_mr(m));
		}
		part(p);
		for (struct ibv_wc wc; ibv_poll_cq(cq, 1, &wc) > 0;)
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
	over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	state = seed = argc > 2 ? strtoul(argv[2], NULL, 10) * 2654435761u + 88172645463325252ull : 1;
	open_device();
	if (!strcmp(argv[1], "calls"))
		calls();
	else if (!strcmp(argv[1], "reads"))
		reads();
	else if (!strcmp(argv[1], "check") && argc > 3)
		check(atoi(argv[3]));
	else if (!strcmp(argv[1], "race") && argc > 3)
		race(atol(argv[3]));
	else
		return 2;
	CHECK(!ibv_dereg_mr(explicit_mr) && !ibv_dereg_mr(readable) && !ibv_dereg_mr(implicit_mr));
	printf("%s: as it should be\n", argv[1]);
	return 0;
}
