/* Uses channel files of rdma_cm as event-driven programs do, and as hostile ones: by the ABI itself, without a library. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

static void check(int ok, const char *format, ...)
{
	va_list l;

	if (ok)
		return;
	failures++;
	va_start(l, format);
	vprintf(format, l);
	va_end(l);
	printf(" (%s)\n", strerror(errno));
	fflush(stdout);
}

static int opened(int flags)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | flags);

	if (fd < 0) {
		printf("open: %s\n", strerror(errno));
		exit(1);
	}
	return fd;
}

static int command(int fd, int number, const void *body, int in, int out)
{
	char b[512];
	struct rdma_ucm_cmd_hdr h = { number, in, out };

	memcpy(b, &h, sizeof(h));
	memcpy(b + sizeof(h), body, in);
	return write(fd, b, sizeof(h) + in) == (ssize_t)sizeof(h) + in ? 0 : -1;
}

static int create(int fd, int ps)
{
	struct rdma_ucm_create_id_resp r = { -1 };
	struct rdma_ucm_create_id c = { .uid = 7, .response = (uintptr_t)&r, .ps = ps };

	return command(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)) ? -1 : (int)r.id;
}

static int get(int fd, struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event g = { (uintptr_t)e };

	return command(fd, RDMA_USER_CM_CMD_GET_EVENT, &g, sizeof(g), sizeof(*e));
}

/* An event for an id: its address is asked for, and answered by ADDR_RESOLVED, or ADDR_ERROR at once or after 10 ms. */
static int provoke(int fd, int id)
{
	struct rdma_ucm_resolve_ip r = { .id = id, .timeout_ms = 10 };
	struct sockaddr_in *to = (void *)&r.dst_addr;

	to->sin_family = AF_INET;
	to->sin_port = htons(7174);
	to->sin_addr.s_addr = htonl(0x0a010001);
	return command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &r, sizeof(r), 0);
}

static int readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

static void kinds(void)
{
	int fd = opened(O_CLOEXEC), both[2], other, ep = epoll_create1(0), id, got;
	struct rdma_ucm_event_resp e;
	struct epoll_event want = { EPOLLIN, { 0 } };
	struct timeval none = { 5, 0 };
	struct stat st;
	fd_set set;
	pid_t pid;
	int status;

	check(!fstat(fd, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) == 10, "fstat: mode %o, device %lx", st.st_mode, (long)st.st_rdev);
	check(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &want), "epoll before the first command");
	check(!readable(fd, 0), "a new channel is readable");
	check(fcntl(fd, F_GETFD) == FD_CLOEXEC, "close-on-exec");
	check(!fcntl(fd, F_SETFL, O_NONBLOCK) && get(fd, &e) && errno == EAGAIN, "an empty channel that does not block");
	id = create(fd, RDMA_PS_TCP);
	check(id >= 0, "CREATE_ID");
	check(!provoke(fd, id), "RESOLVE_IP");
	check(readable(fd, 60000), "poll of an event");
	check(epoll_wait(ep, &want, 1, 5000) == 1, "epoll of an event");
	FD_ZERO(&set);
	FD_SET(fd, &set);
	check(fd < FD_SETSIZE && select(fd + 1, &set, NULL, NULL, &none) == 1, "select of an event on %d", fd);
	other = dup(fd);
	check(!get(other, &e) && e.uid == 7, "GET_EVENT by a duplicate: event %u of %llu", e.event, (unsigned long long)e.uid);
	check(!readable(fd, 0) && !readable(other, 0) && !epoll_wait(ep, &want, 1, 0), "readable after the event");
	got = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	check(got >= 0 && get(got, &e) && errno == EAGAIN, "a duplicate of fcntl");
	close(got);

	/* A child has the channel too. */
	if (!(pid = fork()))
		_exit(create(fd, RDMA_PS_TCP) < 0);
	check(waitpid(pid, &status, 0) == pid && status == 0, "a command of a child: status %x", status);

	/* A descriptor that another process sends can be waited for. */
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, both), "socketpair");
	{
		char c = 1, room[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec v = { &c, 1 };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
		struct cmsghdr *x = CMSG_FIRSTHDR(&m);

		x->cmsg_level = SOL_SOCKET;
		x->cmsg_type = SCM_RIGHTS;
		x->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(x), &fd, sizeof(fd));
		check(sendmsg(both[0], &m, 0) == 1 && recvmsg(both[1], &m, 0) == 1, "SCM_RIGHTS");
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(got));
	}
	check(!readable(got, 0), "a received descriptor is readable");
	id = create(fd, RDMA_PS_TCP);
	check(!provoke(fd, id) && readable(got, 60000), "poll of an event by a received descriptor");
	close(got);
	close(other);
	close(ep);
	close(fd);
}

static int blocked;
static volatile int handled, task;

static void handler(int s) { handled = s; }

static void *waiter(void *result)
{
	struct rdma_ucm_event_resp e;

	task = syscall(SYS_gettid);
	*(int *)result = get(blocked, &e) ? errno : 0;
	return NULL;
}

/* Starts a waiter, and returns when it has been asleep in GET_EVENT for a while, however busy the machine is. */
static void start(pthread_t *t, int *result)
{
	struct timespec some = { 0, 50000000 }, more = { 0, 300000000 }; /* until the supervisor has the call */
	char name[64], state = 0;
	FILE *f;

	task = 0;
	*result = -1;
	pthread_create(t, NULL, waiter, result);
	while (state != 'S') {
		nanosleep(&some, NULL);
		snprintf(name, sizeof(name), "/proc/self/task/%d/stat", task);
		f = task ? fopen(name, "r") : NULL;
		if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
	}
	nanosleep(&more, NULL);
}

/* GET_EVENT waits, other threads go on, and an event or a signal ends it, but not the last close, as the call has the file open. */
static void waits(void)
{
	struct sigaction a = { .sa_handler = handler };
	struct timespec some = { 0, 50000000 };
	pthread_t t;
	int result = -1, id;

	sigaction(SIGUSR1, &a, NULL);
	blocked = opened(0);
	start(&t, &result);
	id = create(blocked, RDMA_PS_TCP);
	check(id >= 0, "CREATE_ID beside a thread in GET_EVENT");
	check(!provoke(blocked, id), "RESOLVE_IP beside a thread in GET_EVENT");
	pthread_join(t, NULL);
	check(result == 0, "GET_EVENT that waits: %d", result);
	check(!readable(blocked, 0), "readable though a thread has the event");

	start(&t, &result);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	check(result == EINTR && handled == SIGUSR1, "a signal in GET_EVENT: %d, handled %d", result, handled);

	start(&t, &result);
	close(blocked);
	nanosleep(&some, NULL);
	check(result == -1, "GET_EVENT of a file that another thread has closed: %d", result);
	pthread_kill(t, SIGUSR1);
	pthread_join(t, NULL);
	check(result == EINTR, "a signal in GET_EVENT of a closed file: %d", result);
}

/* Commands of wrong lengths, pointers into nowhere, ids of others. */
static void hostile(void)
{
	struct rdma_ucm_create_id c = { .response = 16, .ps = RDMA_PS_TCP };
	struct rdma_ucm_destroy_id d = { 0 };
	struct rdma_ucm_listen l = { 0 };
	struct rdma_ucm_migrate_id m = { .fd = 0 };
	int a = opened(O_NONBLOCK), b = opened(O_NONBLOCK), id, n, i;
	unsigned seed = 1;
	char junk[400];

	check(write(a, "", 1) < 0 && errno == EINVAL, "one byte");
	check(syscall(SYS_write, a, (void *)16, 32) < 0 && errno == EFAULT, "a command in nowhere");
	check(command(a, 1000, &c, sizeof(c), 4) && errno == EINVAL, "command 1000");
	check(command(a, RDMA_USER_CM_CMD_GET_OPTION, &c, sizeof(c), 4) && errno == ENOSYS, "GET_OPTION");
	check(command(a, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 4) && errno == EFAULT, "an answer into nowhere");
	check(command(a, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 2) && errno == ENOSPC, "no room for the answer");
	check(create(a, 5) < 0 && errno == EINVAL, "an unknown port space");
	id = create(a, RDMA_PS_TCP);
	l.id = id;
	check(command(b, RDMA_USER_CM_CMD_LISTEN, &l, sizeof(l), 0) && errno == EINVAL, "an id of another channel");
	l.id = 60000;
	check(command(a, RDMA_USER_CM_CMD_LISTEN, &l, sizeof(l), 0) && errno == ENOENT, "an id of nobody");
	m.id = id;
	m.response = (uintptr_t)junk;
	check(command(b, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), 4) && errno == EINVAL, "migration from standard input");
	m.fd = 700;
	check(command(b, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), 4) && errno == ENOENT, "migration from no descriptor");
	d.id = id;
	d.response = 16;
	check(command(a, RDMA_USER_CM_CMD_DESTROY_ID, &d, sizeof(d), 4) && errno == EFAULT, "an end that is answered into nowhere");
	for (i = 0; i < 1000; i++) {
		for (n = 0; n < (int)sizeof(junk); n++)
			junk[n] = rand_r(&seed) % 4 ? 0 : rand_r(&seed);
		junk[0] = rand_r(&seed) % 25;
		junk[1] = junk[2] = junk[3] = 0;
		junk[4] = rand_r(&seed);
		junk[5] = 0;
		n = write(rand_r(&seed) % 2 ? a : b, junk, 8 + rand_r(&seed) % 392);
		(void)n;
	}
	check(create(a, RDMA_PS_UDP) >= 0, "CREATE_ID after all that");
	/* What is still there ends with the process, events included. */
	provoke(a, create(a, RDMA_PS_TCP));
}

/* A child is killed in GET_EVENT. */
static void killed(void)
{
	struct rdma_ucm_event_resp e;
	struct timespec some = { 0, 50000000 };
	pid_t pid = fork();
	int status, i;

	if (!pid) {
		int fd = opened(0);

		for (i = 0; i < 10; i++)
			create(fd, RDMA_PS_TCP);
		get(fd, &e);
		_exit(0);
	}
	nanosleep(&some, NULL);
	kill(pid, SIGKILL);
	check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "a child that was killed: %x", status);
}

/* As many channels as there may be. */
static void many(int most)
{
	int n = 0, fd, last = -1;

	while (n < most && (fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC)) >= 0) {
		last = fd;
		n++;
	}
	printf("%d channels, then %s\n", n, n < most ? strerror(errno) : "enough");
	check(create(last, RDMA_PS_TCP) >= 0, "CREATE_ID by the last, %d", last);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1) {
		many(atoi(argv[1]));
		return failures != 0;
	}
	kinds();
	waits();
	killed();
	hostile();
	printf("%d failures\n", failures);
	return failures != 0;
}
