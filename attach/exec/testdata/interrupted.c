/* Makes calls that the supervisor answers, of every kind, while signals come, and says how many of them a signal has ended. Exits with 1 when a
 * call has failed otherwise, has happened twice, or has ended by a signal when there was none.
 *
 *   interrupted HOW USEC ROUNDS KIND...
 *
 * HOW: "plain", a timer whose signal has a handler; "restart", the same with SA_RESTART; "stop", another process that stops this one and lets it
 * go on. USEC: time between two signals, 0: none come. KIND: see kinds.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static volatile sig_atomic_t signals;
static int heard; /* signals until the last call returned */
static long calls, ended; /* by a signal */
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static char *area; /* of a page */
static long *born; /* children, counted by themselves */
static char *buffer;
static int shm, channel, netlink;
static int stops; /* in place of a timer */
static pid_t stopper;

static void handle(int n) { signals++; }

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* seen counts a call that has returned r, and says whether a signal has ended it, which must have come since the call before. */
static int seen(const char *what, long r)
{
	int before = heard;

	calls++;
	heard = signals;
	if (r != -1)
		return 0;
	if (errno != EINTR || heard == before)
		fail(what);
	ended++;
	return 1;
}

#define UNTIL(what, r, call) do { r = (call); } while (seen(what, r))

static void ioctls(void)
{
	struct ibv_pd *p;
	int r;

	do {
		p = ibv_alloc_pd(ctx);
	} while (seen("ibv_alloc_pd", p ? 0 : -1));
	do {
		r = ibv_dealloc_pd(p);
		errno = r;
	} while (seen("ibv_dealloc_pd", r ? -1 : 0));
}

static void regions(void)
{
	struct ibv_mr *m;
	int r;

	do {
		m = ibv_reg_mr(pd, buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);
	} while (seen("ibv_reg_mr", m ? 0 : -1));
	do {
		r = ibv_dereg_mr(m);
		errno = r;
	} while (seen("ibv_dereg_mr", r ? -1 : 0));
}

static void maps(void)
{
	long r;

	UNTIL("mmap", r, syscall(SYS_mmap, area, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	*area = 1;
	UNTIL("mprotect", r, syscall(SYS_mprotect, area, PAGE, PROT_READ));
	UNTIL("madvise", r, syscall(SYS_madvise, area, PAGE, MADV_DONTNEED));
	UNTIL("mremap", r, syscall(SYS_mremap, area, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, area + PAGE));
	UNTIL("munmap", r, syscall(SYS_munmap, area, 2 * PAGE));
	UNTIL("brk", r, syscall(SYS_brk, 0));
	UNTIL("shmat", r, syscall(SYS_shmat, shm, area, SHM_REMAP));
	UNTIL("shmdt", r, syscall(SYS_shmdt, area));
}

static void born_child(void)
{
	__atomic_fetch_add(born, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

static void reap(long pid)
{
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
}

static void forks(void)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	long before = *born, pid;

	UNTIL("fork", pid, syscall(SYS_fork));
	if (!pid)
		born_child();
	reap(pid);
	UNTIL("clone", pid, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	if (!pid)
		born_child();
	reap(pid);
	UNTIL("clone3", pid, syscall(SYS_clone3, &a, sizeof(a)));
	if (!pid)
		born_child();
	reap(pid);
	if (*born != before + 3) {
		printf("%ld children of 3 forks\n", *born - before);
		exit(1);
	}
}

static void files(void)
{
	struct stat s;
	long fd, r;

	UNTIL("open", fd, syscall(SYS_openat, AT_FDCWD, "/dev/infiniband/uverbs0", O_RDWR));
	UNTIL("fstat", r, syscall(SYS_fstat, fd, &s));
	if (!S_ISCHR(s.st_mode))
		fail("not a device file");
	UNTIL("newfstatat", r, syscall(SYS_newfstatat, fd, "", &s, AT_EMPTY_PATH));
	close(fd);
}

static int command(int number, const void *body, int in, int out)
{
	char b[512];
	struct rdma_ucm_cmd_hdr h = { number, in, out };

	memcpy(b, &h, sizeof(h));
	memcpy(b + sizeof(h), body, in);
	return write(channel, b, sizeof(h) + in) == (ssize_t)sizeof(h) + in ? 0 : -1;
}

static void channels(void)
{
	struct rdma_ucm_create_id_resp made;
	struct rdma_ucm_destroy_id_resp events;
	struct rdma_ucm_create_id c = { .uid = 7, .response = (uintptr_t)&made, .ps = RDMA_PS_TCP };
	struct rdma_ucm_destroy_id d = { .response = (uintptr_t)&events };
	long fd, r;

	UNTIL("create id", r, command(RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(made)));
	d.id = made.id;
	UNTIL("destroy id", r, command(RDMA_USER_CM_CMD_DESTROY_ID, &d, sizeof(d), sizeof(events)));
	UNTIL("dup", fd, syscall(SYS_dup, channel));
	close(fd);
}

static void netlinks(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr h = { sizeof(h), RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET), NLM_F_REQUEST, 7, 0 };
	char answer[4096];
	long fd, r;

	UNTIL("socket", fd, syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_RDMA));
	close(fd);
	UNTIL("sendto", r, syscall(SYS_sendto, netlink, &h, sizeof(h), 0, &kernel, sizeof(kernel)));
	while (recv(netlink, answer, sizeof(answer), 0) < 0)
		if (errno != EINTR)
			fail("recv");
	/* A request that was answered twice has a second answer. */
	if (recv(netlink, answer, sizeof(answer), MSG_DONTWAIT) >= 0)
		fail("a second answer");
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = { { "ioctl", ioctls }, { "region", regions }, { "memory", maps }, { "fork", forks }, { "file", files },
	{ "channel", channels }, { "netlink", netlinks } };

/* stop ends by SIGTERM, but not while the victim is stopped. */
static void stop(pid_t victim, int us)
{
	sigset_t term, none;

	sigemptyset(&none);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		usleep(us);
		sigprocmask(SIG_SETMASK, &term, NULL);
		kill(victim, SIGSTOP);
		kill(victim, SIGCONT);
		sigprocmask(SIG_SETMASK, &none, NULL);
	}
}

/* storm begins or (0) ends the signals. */
static void storm(int us)
{
	struct itimerval every = { { 0, us }, { 0, us } };
	pid_t self = getpid();

	if (!us && !stopper && stops)
		return;
	if (!stops) {
		if (setitimer(ITIMER_REAL, &every, NULL))
			fail("setitimer");
	} else if (!us) {
		kill(stopper, SIGTERM);
		reap(stopper);
	} else {
		do {
			stopper = fork();
		} while (stopper < 0);
		if (!stopper)
			stop(self, us);
	}
}

static void prepare(const char *how)
{
	struct sigaction a = { .sa_handler = handle, .sa_flags = strcmp(how, "restart") ? 0 : SA_RESTART };
	struct ibv_device **l = ibv_get_device_list(NULL);

	ctx = l && l[0] ? ibv_open_device(l[0]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		fail("open");
	born = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	area = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shm = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	channel = open("/dev/infiniband/rdma_cm", O_RDWR);
	netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (shm < 0 || channel < 0 || netlink < 0)
		fail("prepare");
	sigaction(SIGALRM, &a, NULL);
	stops = !strcmp(how, "stop");
}

int main(int argc, char **argv)
{
	int us = atoi(argv[2]), rounds = atoi(argv[3]), i, j, k, before;

	prepare(argv[1]);
	before = descriptors();
	for (i = 4; i < argc; i++)
		for (k = 0; k < (int)(sizeof(kinds) / sizeof(kinds[0])); k++) {
			if (strcmp(kinds[k].name, argv[i]))
				continue;
			calls = ended = signals = heard = 0;
			storm(us);
			for (j = 0; j < rounds; j++)
				kinds[k].run();
			storm(0);
			printf("%s: %ld of %ld calls ended, %d signals\n", argv[i], ended, calls, (int)signals);
			fflush(stdout);
		}
	shmctl(shm, IPC_RMID, NULL);
	if (descriptors() != before)
		fail("descriptors are left");
	return 0;
}
