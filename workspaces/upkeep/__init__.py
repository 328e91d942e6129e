"""What is looked after without anybody asking: that rows, disks and git agree, what everything takes, and that clones stay quick."""
