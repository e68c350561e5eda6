/* A plugin without librdkafka that has a function of the program's name: RTLD_DEEPBIND decides whose it gets.
 */
#include <stdio.h>

const char *whose(void);
const char *whose(void)
{
    return "plugin";
}

int run(void);
int run(void)
{
    printf("whose=%s\n", whose());
    return 1;
}
