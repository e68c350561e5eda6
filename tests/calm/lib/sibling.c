/* Opened by outer. */
int answer(void);
int answer(void)
{
    return 42;
}
