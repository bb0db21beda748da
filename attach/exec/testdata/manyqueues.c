// manyqueues N makes N completion queues, and gives them back.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *x = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	struct ibv_cq **cq = calloc(n, sizeof *cq);
	if (!x || !cq)
		return 2;
	for (int i = 0; i < n; i++)
		if (!(cq[i] = ibv_create_cq(x, 1, NULL, NULL, 0)))
			return 3;
	for (int i = 0; i < n; i++)
		if (ibv_destroy_cq(cq[i]))
			return 4;
	printf("made %d\n", n);
	return 0;
}
