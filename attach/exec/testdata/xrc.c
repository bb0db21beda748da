/*
 * xrc has processes that share XRC domains by a file: which file it is, who may open it, and that a target queue pair stays
 * as long as one of them has a handle of it, also when the others are killed. Its argument is a folder to write to. It
 * prints a line for each part and ends with status 0 when all is as it should be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { \
	fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #x, errno); exit(1); } } while (0)

static char path[4096];

static struct ibv_context *device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c;

	CHECK(list && list[0]);
	c = ibv_open_device(list[0]);
	CHECK(c);
	ibv_free_device_list(list);
	return c;
}

static struct ibv_xrcd *domain(struct ibv_context *c, int fd, int flags)
{
	struct ibv_xrcd_init_attr a = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags };

	errno = 0;
	return ibv_open_xrcd(c, &a);
}

static int file(int flags)
{
	int fd = open(path, flags, 0600);

	CHECK(fd >= 0);
	return fd;
}

static struct ibv_qp *target(struct ibv_context *c, struct ibv_xrcd *x)
{
	struct ibv_qp_init_attr_ex a = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x };
	struct ibv_qp *q = ibv_create_qp_ex(c, &a);

	CHECK(q);
	return q;
}

static struct ibv_qp *open_qp(struct ibv_context *c, struct ibv_xrcd *x, uint32_t qpn)
{
	struct ibv_qp_open_attr a = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn, .xrcd = x, .qp_type = IBV_QPT_XRC_RECV };

	errno = 0;
	return ibv_open_qp(c, &a);
}

static void to_init(struct ibv_qp *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static enum ibv_qp_state state(struct ibv_qp *q)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr i;

	CHECK(!ibv_query_qp(q, &a, IBV_QP_STATE, &i));
	return a.qp_state;
}

/* Which file it is: by its inode, not by its name or its number. */
static void files(void)
{
	struct ibv_context *c = device();
	int fd = file(O_RDWR | O_CREAT), other, only_path, i;
	struct ibv_xrcd *a, *b;

	CHECK(!domain(c, fd, 0) && errno == EAGAIN);
	CHECK(!domain(c, 1000, O_CREAT) && errno == EBADF);
	only_path = file(O_PATH);
	CHECK(!domain(c, only_path, O_CREAT) && errno == EBADF);
	close(only_path);
	a = domain(c, fd, O_CREAT | O_EXCL);
	CHECK(a);
	CHECK(!domain(c, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	other = file(O_RDONLY);
	b = domain(c, other, 0);
	CHECK(b && !ibv_close_xrcd(b));
	close(other);
	close(fd);
	CHECK(!unlink(path));
	/* The kernel still holds the inode of the domain: its number is not that of a new file. */
	for (i = 0; i < 16; i++) {
		fd = file(O_RDWR | O_CREAT);
		CHECK(!domain(c, fd, 0) && errno == EAGAIN);
		close(fd);
		CHECK(!unlink(path));
	}
	CHECK(!ibv_close_xrcd(a));
	CHECK(!ibv_close_device(c));
	printf("files\n");
}

/* serve makes a target in a child, writes its number to the pipe, and waits until it is killed. */
static void serve(int to)
{
	struct ibv_context *c = device();
	struct ibv_xrcd *x = domain(c, file(O_RDWR), O_CREAT);
	struct ibv_qp *q;

	CHECK(x);
	q = target(c, x);
	to_init(q);
	CHECK(write(to, &q->qp_num, 4) == 4);
	for (;;)
		pause();
}

/*
 * A target outlives the process that made it, for another has it open; and ends with that one's handles. These are closed with
 * the device.
 */
static void lifetimes(void)
{
	struct ibv_context *c;
	struct ibv_xrcd *x;
	struct ibv_qp *q, *again;
	uint32_t qpn;
	int fds[2], fd = file(O_RDWR | O_CREAT), i;
	pid_t child;

	CHECK(!pipe(fds));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		serve(fds[1]);
	CHECK(read(fds[0], &qpn, 4) == 4);
	c = device();
	x = domain(c, fd, 0);
	CHECK(x);
	q = open_qp(c, x, qpn);
	CHECK(q && q->qp_num == qpn && state(q) == IBV_QPS_INIT);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	/* Until the supervisor has seen its end, the child's handle is there too. */
	for (i = 0; i < 20; i++) {
		CHECK(state(q) == IBV_QPS_INIT);
		usleep(50000);
	}
	again = open_qp(c, x, qpn);
	CHECK(again && state(again) == IBV_QPS_INIT);
	CHECK(ibv_close_xrcd(x) == EBUSY);
	CHECK(!ibv_close_device(c));
	c = device();
	CHECK(!domain(c, fd, 0) && errno == EAGAIN);
	x = domain(c, fd, O_CREAT | O_EXCL);
	CHECK(x && !open_qp(c, x, qpn) && errno == EINVAL);
	q = target(c, x);
	qpn = q->qp_num;
	CHECK(ibv_close_xrcd(x) == EBUSY);
	CHECK(!ibv_destroy_qp(q));
	CHECK(!open_qp(c, x, qpn) && errno == EINVAL);
	CHECK(!ibv_close_xrcd(x));
	CHECK(!ibv_close_device(c));
	printf("lifetimes\n");
}

/* The last process is killed: the target and the domain end. */
static void orphans(void)
{
	struct ibv_context *c = device();
	int fds[2], fd = file(O_RDWR | O_CREAT), i;
	struct ibv_xrcd *x;
	uint32_t qpn;
	pid_t child;

	CHECK(!pipe(fds));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		serve(fds[1]);
	CHECK(read(fds[0], &qpn, 4) == 4);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	for (i = 0; (x = domain(c, fd, 0)); i++) {
		CHECK(i < 6000 && !ibv_close_xrcd(x));
		usleep(50000);
	}
	CHECK(errno == EAGAIN);
	x = domain(c, fd, O_CREAT | O_EXCL);
	CHECK(x && !open_qp(c, x, qpn) && errno == EINVAL);
	CHECK(!ibv_close_xrcd(x));
	CHECK(!ibv_close_device(c));
	printf("orphans\n");
}

/* A child has the context of its parent, and descriptors of its own. */
static void children(void)
{
	struct ibv_context *c = device();
	struct ibv_xrcd *x;
	int fd = file(O_RDWR | O_CREAT), status;
	pid_t child;

	x = domain(c, fd, O_CREAT);
	CHECK(x);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		char other[4200];
		int mine;

		close(fd);
		snprintf(other, sizeof other, "%s2", path);
		mine = open(other, O_RDWR | O_CREAT, 0600);
		CHECK(mine == fd); /* the same number, another file */
		CHECK(!domain(c, mine, 0) && errno == EAGAIN);
		CHECK(domain(c, file(O_RDONLY), 0));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!ibv_close_xrcd(x));
	x = domain(c, fd, 0); /* what the child opened belongs to the context */
	CHECK(x && !ibv_close_xrcd(x));
	CHECK(!ibv_close_device(c));
	printf("children\n");
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	snprintf(path, sizeof path, "%s/domain", argv[1]);
	setbuf(stdout, NULL);
	files();
	lifetimes();
	orphans();
	children();
	return 0;
}
