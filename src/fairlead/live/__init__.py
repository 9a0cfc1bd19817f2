"""What clients hear about tasks and jobs while they wait and run: messages, and a feed of them."""
