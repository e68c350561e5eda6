/* static: linked with -static, no dynamic loader runs and no preload. */
#include <stdio.h>

int main(void)
{
    puts("hello=static");
    return 7;
}
