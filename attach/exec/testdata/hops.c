// Leaves chains of processes behind, each of which starts the next one and ends, so that none lives for long.
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
	for (int i = 0; i < atoi(argv[1]); i++) {
		if (fork())
			continue;
		setsid();
		for (;;) {
			pid_t p = fork();
			if (p > 0)
				_exit(0);
			if (p < 0)
				usleep(100);
		}
	}
	usleep(20000);
	return 7;
}
