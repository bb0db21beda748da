/* Opens sockets of NETLINK_RDMA until one is refused, asks by each of them for the system's settings with sendto, sendmsg
   and without an address of its own, and uses a socket of another protocol beside them. */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what, int i)
{
	printf("%s of socket %d: %s\n", what, i, strerror(errno));
	exit(1);
}

static void ask(int fd, int i)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr h = { sizeof(h), RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET), NLM_F_REQUEST, 7 + i, 0 };
	struct iovec part[2] = { { &h, 5 }, { (char *)&h + 5, sizeof(h) - 5 } };
	struct msghdr m = { .msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = part, .msg_iovlen = 2 };
	char answer[4096];
	struct nlmsghdr *a = (void *)answer;

	if ((i % 2 ? sendmsg(fd, &m, 0) : sendto(fd, &h, sizeof(h), 0, (void *)&kernel, sizeof(kernel))) != sizeof(h))
		fail("send", i);
	if (recv(fd, answer, sizeof(answer), 0) < (ssize_t)sizeof(h))
		fail("receive", i);
	if (a->nlmsg_seq != h.nlmsg_seq || a->nlmsg_type != h.nlmsg_type) {
		printf("socket %d: an answer of type %d to request %u\n", i, a->nlmsg_type, a->nlmsg_seq);
		exit(1);
	}
}

int main(void)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	struct nlmsghdr route = { sizeof(route) + 16, 18 /* RTM_GETLINK */, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 };
	char request[32] = { 0 }, answer[4096];
	int fd, i, other = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), at;

	memcpy(request, &route, sizeof(route));
	at = dup2(other, 1000); /* among the numbers of the others */
	for (i = 0; (fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA)) >= 0; i++) {
		if (i % 3 && bind(fd, (void *)&own, sizeof(own)))
			fail("bind", i);
		ask(fd, i);
		if (i == 3) {
			struct nlmsghdr h = { 0 };
			if (sendto(fd, &h, 100 << 10, 0, (void *)&own, sizeof(own)) >= 0 || (errno != EMSGSIZE && errno != EFAULT))
				fail("too long a request", i);
			if (sendto(fd, (void *)16, 16, 0, (void *)&own, sizeof(own)) >= 0 || errno != EFAULT)
				fail("a request from nowhere", i);
		}
	}
	printf("%d sockets, then %s\n", i + 1, strerror(errno));
	memset(&own, 0, sizeof(own));
	own.nl_family = AF_NETLINK;
	if (sendto(at, request, sizeof(request), 0, (void *)&own, sizeof(own)) != sizeof(request) || recv(at, answer, sizeof(answer), 0) <= 0)
		fail("another protocol", 1000);
	return 0;
}
